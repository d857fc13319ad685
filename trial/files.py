"""Part 1: every bad file is read or refused with one line; none hangs, dies or takes a gigabyte."""

import time
from collections.abc import Iterator

from trial.bad_files import BadFile, bad_files
from trial.progress import Progress
from trial.table import Outcome
from trial.watch import DIED, HANG, READ, REFUSED, TRACEBACK, Watched

MOST_MEGABYTES = 1024.0


def handle(file: BadFile | None) -> str:
    """What the program does with a file that somebody drops in; in another process."""
    from idecode_core.audio.read import EXTENSIONS as SOUNDS
    from idecode_core.audio.read import read_sound
    from idecode_core.errors import InputError
    from idecode_core.files.archives import File, read_files
    from idecode_core.files.tables import read_table
    from idecode_core.image.read import EXTENSIONS as PICTURES
    from idecode_core.image.read import read_image

    if file is None:
        return ""
    if file.kind == "image":
        return str(read_image(file.data, file.name).shape)
    if file.kind == "sound":
        return str(read_sound(file.data, name=file.name).seconds)
    if file.kind == "scores":
        return str(read_table(File(file.name, file.data)).vectors().shape)
    # a zip among others: each of its files is read as what it is called
    contents = read_files([File(file.name, file.data)], (*PICTURES, *SOUNDS))
    if contents.refused and not contents.files:
        raise InputError(contents.refused[0])
    return f"{len(contents.files)} files, {len(contents.refused)} refused"


def try_files(seed: int, short: bool) -> Iterator[Outcome]:
    outcomes = {kind: Outcome("files", f"read as {kind}") for kind in ("image", "sound", "scores", "zip")}
    files = bad_files(seed, changes=2, large=False) if short else bad_files(seed)
    progress = Progress("bad files", None)
    with Watched(handle) as read:
        for i, file in enumerate(files):
            judge(outcomes[file.kind], file, read)
            progress(i + 1)
    yield from outcomes.values()


def judge(outcome: Outcome, file: BadFile, read: Watched) -> None:
    begin = time.monotonic()
    ended = read(file)
    outcome.seconds += time.monotonic() - begin
    outcome.cases += 1
    outcome.weigh(ended.megabytes)
    named = f"{file.name[:40]!r}, {file.what}: {ended.words[:200]}"
    if ended.how in (TRACEBACK, DIED):
        outcome.blame("tracebacks", named)
    elif ended.how == HANG:
        outcome.blame("hangs", named)
    elif ended.how == READ and file.must_be_refused:
        outcome.blame("wrong", f"{named} was accepted")
    elif ended.how == REFUSED and "\n" in ended.words.replace(file.name, ""):
        outcome.blame("wrong", f"{named} has several lines")
    if ended.megabytes > MOST_MEGABYTES:
        outcome.blame("wrong", f"{named} took {ended.megabytes:.0f} MB")
