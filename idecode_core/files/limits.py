"""How large a file may be: one truth for reading, for archives, for uploads and for what pages say."""

IMAGE_BYTES = 20 * 2**20
SOUND_BYTES = 50 * 2**20
SOUND_SECONDS = 60
SCORES_BYTES = 64 * 2**20
ARCHIVE_BYTES = 200 * 2**20
"""A zip as it is uploaded."""
UNPACKED_BYTES = 2**30
"""What all archives of an upload together may unpack to."""
