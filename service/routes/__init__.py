"""HTTP routes, one file per concept."""
