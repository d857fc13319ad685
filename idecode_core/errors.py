"""One family of errors. Each message says what was expected, what came, and what to do."""


class IdecodeError(ValueError):
    """Base of everything that a user can put right; apps and commands show its text, never a traceback."""


class InputError(IdecodeError):
    """A file, image or sound that cannot be read as what the detector takes."""


class ScoreError(IdecodeError):
    """Scores that cannot be ranked: empty, not finite, or of the wrong shape."""


class SettingError(IdecodeError):
    """A setting out of its range: n, epsilon, an unknown name."""


class CheckpointError(IdecodeError):
    """A detector folder that is incomplete, damaged, or whose parts do not belong together."""


class DataError(IdecodeError):
    """A dataset that is missing or not in the expected format."""


class SessionError(IdecodeError):
    """A session that is damaged, from a newer version, or changed by somebody else in the meantime."""


class TrainingError(IdecodeError):
    """Training that cannot go on: the loss is not finite, or the run belongs to another recipe."""


class DeviceError(IdecodeError):
    """A device that is too small or that stopped answering."""


class SmallerBatchesWarning(UserWarning):
    """A device's memory did not suffice, so fewer inputs go through the network at once."""


class NothingFlaggedWarning(UserWarning):
    """epsilon is so small for this k that no point can ever be flagged."""


class WrongSignWarning(UserWarning):
    """Nearly all new scores lie on the normal side of all calibration scores: the sign may be the other way round."""
