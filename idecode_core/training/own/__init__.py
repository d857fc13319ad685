"""A detector from a folder of anybody's files: which files, which parts, which recipe, and then as any other."""
