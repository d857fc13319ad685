"""Pictures: reading, preprocessing, scoring, variants, sets. `audio` has the same names."""
