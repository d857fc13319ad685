"""Each table and figure of the paper as one function, recomputed from the files in `checkpoints/`."""
