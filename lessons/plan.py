"""The plan of a class of forty-five minutes: one for the app, which shows it below the lessons, and for the notebook of the class."""

from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from lessons.breaking import SWITCHES


class PlanRow(NamedTuple):
    """Some minutes of a class: what to do, and the page that shows it, in the state it begins with."""

    minutes: str
    page: str  # a file of pages/
    label: str
    link: str
    """The state, as in the page's URL."""
    todo: str

    @property
    def state(self) -> dict[str, str]:
        return dict(parse_qsl(self.link))


PLAN = tuple(
    PlanRow(*(cell.strip() for cell in row.split("|")))
    for row in f"""
    0 to 4   | how_it_works     | 1 Rank            | step=1 Rank&how_lean=14.0                         | Let the class count. Ask for the chance of being the strangest of 20.
    4 to 8   | how_it_works     | 2 p-value         | step=2 p-value&how_lean=14.0                      | Work out one p-value on the board. Which values are possible?
    8 to 12  | how_it_works     | 3 Threshold       | step=3 Threshold&how_epsilon=0.1                  | Vote, then let newcomers fall. How many are wronged?
    12 to 14 | how_it_works     | ε = 0.05          | step=3 Threshold&how_lean=60.0&how_epsilon=0.05   | The newcomer lies down. Why is it not flagged?
    14 to 17 | how_it_works     | 4 Model           | step=4 Model&how_lean=8.0&how_turn=47.0           | Check one error by hand.
    17 to 20 | how_it_works     | 5 Draws           | step=5 Draws&how_lean=20.0&how_epsilon=0.1        | Compare n = 1 with n = 20.
    20 to 22 | how_it_works     | 6 Algorithm       | step=6 Algorithm&how_lean=20.0&how_epsilon=0.1    | Read it aloud, line by line.
    22 to 25 | how_it_works     | 7 Picture         | step=7 Picture                                    | The same lines on a shoe, then on a photograph from the room.
    25 to 29 | break_it         | A shared draw     | break_switch={SWITCHES["shared_draw"].title}              | Vote first, then look. How much does the rate vary?
    29 to 32 | break_it         | OOD points inside | break_switch={SWITCHES["contaminated_calibration"].title} | Vote again. The false alarms went down: so what is wrong?
    32 to 34 | break_it         | Naive Fisher      | break_switch={SWITCHES["naive_fisher"].title}&break_n=20  | Then drag n to 1. What happens, and why?
    34 to 36 | guarantee        | Guarantee         |                                                   | The small print: the promise is an average over calibration sets.
    36 to 39 | many_and_streams | A batch           | view=A batch of many                              | Two rates that sound alike: which one does a plain threshold bound?
    39 to 41 | many_and_streams | A stream          | view=A stream that changes                        | Drag the change. Who reacts more slowly?
    41 to 45 | inspect          | Inspect           | source=Files                                      | A picture of your own: what does the verdict promise? Then the exit quiz.
        """.strip().splitlines()
)


def plan_table() -> str:
    """As Markdown; each row leads into the app, where one of this user runs."""
    from idecode_core import studio

    app = studio.running()
    lines = ["| minutes | in the app | what to do |", "|---|---|---|"]
    for row in PLAN:
        link = row.label
        if app is not None:
            state = urlencode({**row.state, "token": app.token})
            link = f"[{row.label}](http://localhost:{app.port}/{row.page}?{state})"
        lines.append(f"| {row.minutes} | {link} | {row.todo} |")
    return "\n".join(lines)
