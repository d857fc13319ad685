"""How choices were made: scripts that were run once, with the notes that they led to. Not part of the package."""
