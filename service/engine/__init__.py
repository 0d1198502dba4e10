"""The engine: slots, runners and the jobs that use them. It knows tensors by role, no kind."""
