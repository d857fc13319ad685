"""The parts on all cores, all GPUs or a cluster, by Ray Data (the extra [scale]).

Actors hold the detector. On a CPU each of them reads and scores with one thread. With GPUs, reading and decoding are
tasks of their own on the CPUs, and the actors, one per GPU, only score: Ray streams the parts from one to the other and
holds readers back when scoring is slower. A lost worker's part is done again by another.
"""

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from idecode_core.errors import DeviceError
from idecode_core.files.read import reason
from idecode_core.scale.files import Part, read_part
from idecode_core.scale.part import Job, Worker
from idecode_core.scale.run import Progress

Row = dict[str, Any]


class ScoreActor:
    """One worker of Ray: a detector, in memory once."""

    def __init__(self, folder: str, job: Job, device: str) -> None:
        import torch

        torch.set_num_threads(1)  # as many workers as cores: each has its own
        self.worker = Worker(Path(folder), job, device)

    def __call__(self, row: Row) -> Row:
        if "readings" in row:
            done = self.worker.write(row["number"], row["files"], row["readings"])
        else:
            done = self.worker.score(Part(row["number"], row["offset"], row["count"]))
        return {"files": done.files}


class ReadActor:
    """Reads and decodes parts for the actors that have a GPU; its copy of the detector stays on the CPU."""

    def __init__(self, folder: str, job: Job) -> None:
        self.folder = Path(folder)
        self.worker = Worker(self.folder, job, "cpu")

    def __call__(self, row: Row) -> Row:
        files = read_part(self.folder, Part(row["number"], row["offset"], row["count"]))
        return {"number": row["number"], "files": files, "readings": list(self.worker.read(files))}


def start(engine: Any, workers: int | None, address: str | None) -> None:
    """Ray on this machine, or the cluster at an address; a DeviceError when it does not answer."""
    local = {} if address else {"num_cpus": workers or os.cpu_count(), "include_dashboard": False}
    try:
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
    todo: Iterable[Part],
    *,
    workers: int | None,
    address: str | None,
    device: str | None,
    progress: Progress,
) -> int:
    """All parts by Ray's workers; the number of files scored. `folder` and the files must be visible to every machine."""
    import ray.data

    engine: Any = ray  # its types know neither classes as functions nor datasets that change their kind
    rows = [vars(part) for part in todo]  # a few numbers per thousand files
    if not rows:
        return 0
    started = not engine.is_initialized()
    if started:
        start(engine, workers, address)
    try:
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # the command has a progress bar of its own
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
                fn_constructor_args=(where, job),
                compute=engine.data.ActorPoolStrategy(size=readers),
            )
        data = data.map(
            ScoreActor,
            fn_constructor_args=(where, job, device or ("cuda" if gpus else "cpu")),
            compute=engine.data.ActorPoolStrategy(size=count),
            num_gpus=1 if gpus else 0,
            num_cpus=0 if gpus else 1,
        )
        files = 0
        for row in data.iter_rows():
            files += row["files"]
            progress(files)
        return files
    finally:
        if started:
            engine.shutdown()
