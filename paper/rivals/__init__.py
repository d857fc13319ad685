"""Methods that only the tables of the paper need: each is a scorer."""
