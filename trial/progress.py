"""A line now and then, so that whoever waits sees that it goes on."""

import sys
import time
from dataclasses import dataclass, field


@dataclass
class Progress:
    """Call it after each case; it prints at most one line every `every` seconds, beside the rows of the table."""

    what: str
    of: float | None  # None: nobody knows beforehand
    unit: str = "cases"
    every: float = 20.0
    last: float = field(default_factory=time.monotonic)

    def __call__(self, done: float) -> None:
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            of = "" if self.of is None else f" of {self.of:,.0f}"
            print(f"    {self.what}: {done:,.0f}{of} {self.unit}", file=sys.stderr, flush=True)
