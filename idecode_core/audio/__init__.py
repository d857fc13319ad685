"""Sounds: reading, features, scoring, variants, sets. `image` has the same names."""
