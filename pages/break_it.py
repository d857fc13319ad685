"""Break it: violate one assumption at a time and watch the guarantee go, beside the intact run; it moves in the browser."""

from ui.frame.catalogue import link
from ui.frame.messages import guard
from ui.learn.class_plan import class_plan, lesson
from ui.learn.moving_lesson import show_step

with guard(), lesson("Break it"):
    show_step(10, "break")
    class_plan()
    link("attack_lab", "Not chance but intent: inputs that somebody chose, in the Attack lab", "target")
