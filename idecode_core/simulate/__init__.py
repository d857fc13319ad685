"""Seeded simulations for teaching: break one assumption at a time, judge many points at once, watch a stream.

Each runs within a second and returns a frozen result that `plots` can draw. Nothing here touches a real detector.
"""

from idecode_core.guarantees.streams import MARTINGALES
from idecode_core.simulate.batch import BATCH_RULES, BatchComparison, mixed_batch
from idecode_core.simulate.breaking import SWITCHES, Comparison, Run, Setup, Switch, break_it
from idecode_core.simulate.stream import StreamRun, changing_stream

__all__ = [
    "BATCH_RULES",
    "MARTINGALES",
    "SWITCHES",
    "BatchComparison",
    "Comparison",
    "Run",
    "Setup",
    "StreamRun",
    "Switch",
    "break_it",
    "changing_stream",
    "mixed_batch",
]
