"""Many and streams: a batch of many points, and a stream that changes."""

from ui.frame.choices import one_of
from ui.frame.messages import guard
from ui.learn.batch_lesson import batch_lesson
from ui.learn.stream_lesson import stream_lesson
from ui.learn.teaching import LINKED, class_plan, lesson

VIEWS = {"A batch of many": batch_lesson, "A stream that changes": stream_lesson}

with guard(), lesson("Many and streams"):
    VIEWS[one_of("View", VIEWS, "view", **LINKED)]()
    class_plan()
