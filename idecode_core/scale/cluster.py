"""A run on all cores, all GPUs or a cluster, by Ray Data (the extra [scale]).

Actors hold the detector. On a CPU each of them reads and scores with one thread. With GPUs, reading and decoding are
tasks of their own on the CPUs, and the actors, one per GPU, only score: Ray streams the files from one to the other and
holds readers back when scoring is slower. What a lost worker had in hand is done again by another.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from idecode_core.errors import DeviceError
from idecode_core.files.read import reason
from idecode_core.scale.files import Stretch, names_in, read_lines
from idecode_core.scale.part import Done, Job, Progress, Worker

Row = dict[str, Any]


class ScoreActor:
    """One worker of Ray: a detector, in memory once."""

    def __init__(self, folder: str, job: Job, device: str, seconds: float, network: Row) -> None:
        import torch

        torch.set_num_threads(1)  # as many workers as cores: each has its own
        self.worker = Worker(Path(folder), job, device, seconds, network)

    def __call__(self, row: Row) -> Row:
        before, rest = self.worker.what_is_left(Stretch(row["start"], row["offset"], row["count"]))
        if "readings" in row:
            done = self.worker.write(
                rest.start, row["lines"][before.files :], row["readings"][before.files :]
            )
        else:
            done = self.worker.score(rest)
        return vars(before + done)


class ReadActor:
    """Reads and decodes files for the actors that have a GPU; its copy of the detector stays on the CPU."""

    def __init__(self, folder: str, job: Job, network: Row) -> None:
        self.folder = Path(folder)
        self.worker = Worker(self.folder, job, "cpu", 0, network)

    def __call__(self, row: Row) -> Row:
        lines = read_lines(self.folder, Stretch(row["start"], row["offset"], row["count"]))
        return {**row, "lines": lines, "readings": list(self.worker.read(names_in(lines)))}


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Ray's C++ part writes past Python to the file that is stderr; what goes wrong comes as an error."""
    before, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(nowhere)


def start(engine: Any, workers: int | None, address: str | None) -> None:
    """Ray on this machine, or the cluster at an address; a DeviceError when it does not answer."""
    local = {} if address else {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
    try:
        with _without_stderr():
            engine.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                **local,
            )
    except Exception as error:  # Ray has no class of its own for this
        engine.shutdown()
        if address:
            raise DeviceError(
                f"No Ray cluster answers at {address} ({reason(error)}). Check the address, or leave --address out to score "
                "on this machine."
            ) from error
        raise DeviceError(
            f"Ray did not start on this machine ({reason(error)}). Try again when less is running, or with --workers 1, in "
            "one process; what was scored before is kept."
        ) from error


def score_on_ray(
    folder: Path,
    job: Job,
    todo: list[Stretch],
    *,
    workers: int | None,
    address: str | None,
    device: str | None,
    seconds: float,
    network: Row,
    progress: Progress,
) -> Done:
    """All stretches by Ray's workers. `folder` and the files must be visible to every machine."""
    # The command has sentences and a bar of its own. The level of Ray's C++ part is read when it is imported.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray.data

    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    engine: Any = ray  # its types know neither classes as functions nor datasets that change their kind
    rows = [vars(stretch) for stretch in todo]  # a few numbers per thousand files
    if not rows:
        return Done()
    started = not engine.is_initialized()
    if started:
        start(engine, workers, address)
    try:
        engine.data.DataContext.get_current().enable_progress_bars = False
        gpus = 0 if device == "cpu" else int(engine.cluster_resources().get("GPU", 0))
        cpus = int(engine.cluster_resources().get("CPU", 1))
        count = min(workers or gpus or cpus, len(rows))
        where = str(folder.resolve())
        data = engine.data.from_items(rows, override_num_blocks=len(rows))
        if gpus:
            readers = max(1, cpus - 1)  # decoding photographs takes far more cores than GPUs (docs/scale.md)
            data = data.map(
                ReadActor,
                fn_constructor_args=(where, job, network),
                compute=engine.data.ActorPoolStrategy(size=readers),
            )
        data = data.map(
            ScoreActor,
            fn_constructor_args=(where, job, device or ("cuda" if gpus else "cpu"), seconds, network),
            compute=engine.data.ActorPoolStrategy(size=count),
            num_gpus=1 if gpus else 0,
            num_cpus=0 if gpus else 1,
        )
        done = Done()
        for row in data.iter_rows():
            done += Done(**row)
            progress(done.files)
        return done
    finally:
        if started:
            engine.shutdown()
