"""Many and streams: a batch of many points, and a stream that changes; both move in the browser."""

from ui.frame.links import one_of
from ui.frame.messages import guard
from ui.learn.class_plan import class_plan, lesson
from ui.learn.moving_lesson import show_step

VIEWS = ("A batch of many", "A stream that changes")

with guard(), lesson("Many and streams"):
    if one_of("View", VIEWS, "view") == VIEWS[0]:
        show_step(8, "batch")
    else:
        show_step(9, "stream")
    class_plan()
