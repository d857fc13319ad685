"""What a visitor brings: files that were dropped in, or those of a folder on this machine, which stay where they are."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from idecode_core.errors import InputError
from idecode_core.files.archives import File
from idecode_core.files.names import UNPACKED_BYTES
from ui.frame.cache import remembered, written
from ui.frame.links import one_of
from ui.frame.messages import escape, refused
from ui.frame.samples import Modality, Sample
from ui.frame.session import at_this_machine
from ui.frame.uploads import WAYS, check_files, many_files

if TYPE_CHECKING:
    from idecode_core.training.user_files import Candidate

HERE = "A folder on this machine"
BELONGS, OUTSIDE = "calibrate", "calibrate_ood"


@dataclass(frozen=True, eq=False)
class Brought:
    """Files of a visitor, copies among them."""

    modality: Modality
    samples: Sequence[Sample] = ()
    """What was uploaded."""
    folder: Path | None = None
    """Or where they lie."""
    listed: "Sequence[Candidate]" = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.samples) or len(self.listed)

    def some(self, count: int) -> list[Sample]:
        """A few at random, the same ones each time; those that cannot be read are left out."""
        chosen = np.sort(np.random.default_rng(0).permutation(len(self))[:count])
        if self.folder is None:
            return [self.samples[i] for i in chosen]
        return self._read([self.listed[i] for i in chosen])[0]

    def everything(self) -> list[Sample]:
        """All of them, read where they only lie in a folder; InputError where that would be too much at once."""
        if self.folder is None:
            return list(self.samples)
        size = sum(file.path.stat().st_size for file in self.listed if file.path.is_file())
        if size > UNPACKED_BYTES:
            raise InputError(
                f"{self.folder}: the files have {size / 2**20:,.0f} MB; expected at most {UNPACKED_BYTES // 2**20:,} MB here. Use "
                f"`idecode calibrate` in a terminal, which reads one after another, or bring a random part of them."
            )
        samples, sentences = self._read(self.listed)
        refused(sentences)
        return samples

    def _read(self, files: "Sequence[Candidate]") -> tuple[list[Sample], list[str]]:
        """Each once in a session, unless it was changed on the disk."""
        key = (self.modality.name, tuple((str(file.path), written(file.path)) for file in files))

        def read() -> tuple[list[Sample], list[str]]:
            readable = [File(file.name, file.path.read_bytes()) for file in files if file.path.is_file()]
            return check_files(readable, self.modality)

        return remembered("calibrate_read", 3, key, read)

    def source(self, name: str) -> Path:
        """A folder for a training: where they lie, or a new one with what was uploaded, subfolders as they were."""
        from idecode_core.training.background import empty_folder

        if self.folder is not None:
            return self.folder
        folder = empty_folder(name)
        for sample, place in zip(self.samples, places(self.samples), strict=True):
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(sample.data)
        return folder


def places(samples: Sequence[Sample]) -> list[PurePosixPath]:
    """Where each goes below one folder: its class, if it lay in a subfolder, and a name that no other has."""
    ways = [PurePosixPath(sample.name.replace("\\", "/")) for sample in samples]
    above = [way.parts[:-1] for way in ways]
    while above and above[0] and all(parts[:1] == above[0][:1] for parts in above):
        above = [parts[1:] for parts in above]  # one folder around all of them is no class
    return [
        PurePosixPath(*map(_safe, parts[:1]), f"{i:05d}-{_safe(way.stem)}{way.suffix.lower()}")
        for i, (way, parts) in enumerate(zip(ways, above, strict=True))
    ]


def _safe(name: str) -> str:
    """A name that no disk takes amiss, and no way to another folder."""
    return "".join(c if c.isalnum() or c in "-_ " else "_" for c in name)[:60].strip() or "_"


def bring(modality: Modality) -> tuple[Brought, Brought]:
    """What belongs, and what does not belong, which may be empty."""
    way = one_of("Bring", (*WAYS, HERE) if at_this_machine() else WAYS, "cal_bring", bind=None)
    left, right = st.columns(2, gap="medium")
    words = (f"What belongs: your {modality.plural}", "What does not belong, if you have some")
    with left:
        belongs = _ask(words[0], BELONGS, modality, way)
    with right:
        outside = _ask(words[1], OUTSIDE, modality, way)
    return belongs, outside


def _ask(label: str, key: str, modality: Modality, way: str) -> Brought:
    if way != HERE:
        return Brought(modality, many_files(label, key, modality, folder=way == WAYS[1], copies=True))
    text = st.text_input(
        label,
        key=f"{key}_path",
        persist_state="session",
        placeholder="the path of a folder, or of a CSV with a column file",
        help="It is read on the machine that runs this app, which is yours. Files stay where they are.",
    ).strip()
    if not text:
        return Brought(modality)
    from idecode_core.training.user_files import find_user_files

    folder = Path(text).expanduser()
    try:
        listed, _ = find_user_files(folder, modality.extensions, modality.thing)
    except InputError as error:
        st.warning(escape(str(error)))
        return Brought(modality)
    st.markdown(f"**{len(listed):,} {modality.plural}** in {escape(folder.name)}.")
    return Brought(modality, (), folder.absolute(), listed)
