"""The commands of `python -m idecode_core`, one file each.

Whatever needs torch is imported inside of the functions: `--help` answers at once.
"""
