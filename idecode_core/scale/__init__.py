"""Many files, many machines: `idecode score`. Files are listed once, scored in parts, and each part is one Parquet file."""
