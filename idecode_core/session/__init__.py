"""A session: what somebody looks at, with verdicts, settings, tags, notes and pinned runs, as a folder that app and notebook share."""

from idecode_core.session.making import recent
from idecode_core.session.session import Session

__all__ = ["Session", "recent"]
