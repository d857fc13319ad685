"""A detector as a folder: settings, calibration, stored scores and training record, which need no torch; and weights."""
