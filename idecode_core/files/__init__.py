"""Files in and out: atomic writes, one reader for npz and one for JSON, zips from strangers, a user's own scores."""

from idecode_core.files.write import write_atomically, write_folder, write_json, write_npz, write_text

__all__ = ["write_atomically", "write_folder", "write_json", "write_npz", "write_text"]
