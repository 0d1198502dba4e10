"""From data to a trained run: recipes, one loop for every model, a folder for each kind."""
