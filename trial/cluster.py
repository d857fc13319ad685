"""Part 10: Ray, with bad files among the good ones."""

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from idecode_core.errors import DeviceError
from idecode_core.folder.detector import save_detector
from trial import small
from trial.bad_files import bad_files, saved
from trial.table import Outcome

TIMES, SECONDS = 3, 30.0  # that Ray is started, and between


def try_ray(root: Path) -> Outcome:
    """Two workers score a folder in which every third file is bad: each file has one row, and the good ones one process's scores."""
    from PIL import Image

    from idecode_core.scale.judged import judge_scored
    from idecode_core.scale.run import score_files

    outcome = Outcome("ray", "two workers, bad files among good ones")
    folder = root / "pictures"
    folder.mkdir(parents=True)
    save_detector(small.detector("ray"), root / "detector")
    bad = [
        file.data
        for file in islice((f for f in bad_files(0, changes=2, large=False) if f.must_be_refused), 20)
    ]
    for i, pixels in enumerate(small.pictures(40, 3)):
        (folder / f"good-{i:02d}.png").write_bytes(saved(Image.fromarray(pixels), "PNG"))
    for i, data in enumerate(bad):
        (folder / f"bad-{i:02d}.png").write_bytes(data)
    with outcome.timed():
        rows = []
        for workers in (1, 2):
            out = root / f"scored-{workers}"
            patiently(
                lambda out=out, workers=workers: score_files(  # type: ignore[misc]
                    folder,
                    out,
                    root / "detector",
                    n=3,
                    epsilon=0.1,
                    workers=workers,
                    device="cpu",
                    tell=lambda _: None,
                )
            )
            rows.append({row["file"]: row.get("p_value") for row in judge_scored(out).to_pylist()})
        outcome.cases = len(rows[1])
        if rows[0] != rows[1] or len(rows[0]) != 40 + len(bad):
            outcome.blame("wrong", f"{len(rows[0])} rows by one process, {len(rows[1])} by two, not the same")
    return outcome


def patiently(score: Callable[[], object]) -> None:
    """Ray gives up starting on a machine that is too busy, and says so; the same call goes on later."""
    for _ in range(TIMES - 1):
        try:
            score()
            return
        except DeviceError:
            time.sleep(SECONDS)
    score()
