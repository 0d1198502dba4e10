"""The paper's tasks, a folder each: whatever folder here has a recipe is one."""
