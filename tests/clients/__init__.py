"""The clients against a scripted service, and against a real one."""
