"""From data to a calibrated detector: recipes, tasks, one loop, and detectors of a user's own files."""
