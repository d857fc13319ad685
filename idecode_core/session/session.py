"""`Session`: what somebody looks at, kept in a folder that the app and the notebook both open.

Two programs may have one session open. Each save is a new revision: tags and notes are put together input by input with
what the other one saved in the meantime, and where both wrote another note on one input, the later one is refused.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock, Timeout

from idecode_core.conformal.settings import Settings
from idecode_core.errors import InputError, SessionError, SettingError
from idecode_core.files.names import printable
from idecode_core.files.shown import Shown, data_frame
from idecode_core.files.write import could_not_write, write_bytes
from idecode_core.modality import content_of, modality_named
from idecode_core.session import store
from idecode_core.session.merging import merged, put
from idecode_core.session.store import Content, Input, Mark, Pinned

if TYPE_CHECKING:
    from idecode_core.conformal import FloatArray
    from idecode_core.detector import Detection, Detector

LOCK_SECONDS = 10


class Session(Shown):
    """Inputs with their verdicts, a detector, settings, tags, notes and pinned runs. `save` writes it, `reload` reads what the
    app has changed.

        session = Session.from_detection(detector.detect("pictures"), name="monday")
        session.tag(session.inputs[0], "wrong verdict")
        session.save()
        Session.open("monday").tagged("wrong verdict")
    """

    def __init__(self, folder: Path, content: Content, files: Mapping[str, bytes] | None = None) -> None:
        self.folder, self.content = folder, content
        self._files = dict(files or {})  # stored name -> bytes that are not written yet
        self._base = _copy(content)  # as it was read or saved last

    # What it holds.

    @property
    def name(self) -> str:
        """That of its folder."""
        return self.folder.name

    @property
    def title(self) -> str:
        """What people call it: its name, until it is renamed."""
        return self.content.title or self.name

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What is looked at, in order."""
        return self.content.inputs

    @property
    def detector(self) -> Mark:
        """Which detector judged: its name, place and hashes."""
        return self.content.detector

    @property
    def settings(self) -> Settings:
        """How inputs are judged: n, epsilon, delta, F, seed."""
        return self.content.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self.content.settings = settings

    @property
    def p_values(self) -> "FloatArray":
        """One per input; small is strange."""
        return self.content.p_values

    @property
    def score_vectors(self) -> "FloatArray":
        """V: (inputs, n)."""
        return self.content.score_vectors

    @property
    def tags(self) -> dict[str, tuple[str, ...]]:
        """Content hash -> tags."""
        return self.content.tags

    @property
    def notes(self) -> dict[str, str]:
        """Content hash -> note."""
        return self.content.notes

    @property
    def pinned(self) -> tuple[Pinned, ...]:
        """Runs that were kept to be compared."""
        return self.content.pinned

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        return (
            f"Session {self.title!r}: {len(self):,} inputs under {self.detector.name}, n = {self.settings.n}, "
            f"epsilon = {self.settings.epsilon:g}, {len(self.tags):,} tagged, {len(self.pinned):,} pinned"
        )

    # Made from results, or read.

    @staticmethod
    def from_detection(detection: "Detection", *, name: str = "") -> "Session":
        """What `detector.detect` found: files stay where they are, arrays are stored in the session."""
        from idecode_core.session.making import session_of_detection

        return session_of_detection(detection, name)

    @staticmethod
    def open(name: Path | str) -> "Session":
        """A session by its name below the root, by its title, or by the path of its folder."""
        folder = store.folder_of(name)
        if not folder.exists():
            from idecode_core.session.making import recent

            titled = (known for known in recent(most=1_000) if known.title == str(name))
            folder = next((store.folder_of(known.name) for known in titled), folder)
        return Session(folder.resolve() if folder.exists() else folder, store.read(folder))

    def reload(self) -> "Session":
        """What was saved last, by the app or anybody; what was changed here and not saved is put together with it."""
        theirs = store.read(self.folder)
        self.content, self._base = merged(self.name, self.content, self._base, theirs), _copy(theirs)
        return self

    # Changed.

    def rename(self, title: str) -> None:
        """Another title; its folder keeps its name, so that links to it and programs that have it open go on."""
        title = " ".join(title.split())
        if not title or len(title) > store.LONGEST_TITLE or printable(title) != title:
            raise SettingError(
                f"A session's title has 1 to {store.LONGEST_TITLE} plain characters. Choose another one."
            )
        self.content.title = title

    def tag(self, item: Input | str, *tags: str) -> None:
        """The tags of an input, in place of those that it had."""
        words = tuple(dict.fromkeys(" ".join(tag.split()) for tag in tags if tag.strip()))
        if len(words) > store.MOST_TAGS or any(
            len(word) > store.LONGEST_TAG or printable(word) != word for word in words
        ):
            raise SettingError(
                f"An input has at most {store.MOST_TAGS} tags of at most {store.LONGEST_TAG} plain characters each; shorten them, or write a note."
            )
        put(self.content.tags, self._hash(item), words)

    def note(self, item: Input | str, text: str) -> None:
        """The note on an input, in place of the one that it had."""
        text = "\n".join(printable(line) for line in text.splitlines())
        if len(text) > store.LONGEST_NOTE:
            raise SettingError(
                f"A note has at most {store.LONGEST_NOTE:,} characters, this one has {len(text):,}."
            )
        put(self.content.notes, self._hash(item), text)

    def pin(
        self, title: str, detector: str, settings: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> None:
        """Keep a run beside others."""
        run = Pinned(title, detector, dict(settings), {key: float(value) for key, value in numbers.items()})
        if run not in self.content.pinned:
            if len(self.content.pinned) >= store.MOST_PINNED:
                raise SettingError(
                    f"A session keeps at most {store.MOST_PINNED} pinned runs; unpin one first."
                )
            self.content.pinned = (*self.content.pinned, run)

    def unpin(self, run: Pinned) -> None:
        """Let a pinned run go."""
        self.content.pinned = tuple(kept for kept in self.content.pinned if kept != run)

    def judged(self, settings: Settings, score_vectors: "FloatArray", p_values: "FloatArray") -> None:
        """New verdicts on the same inputs, by other settings."""
        self.content.settings = settings
        self.content.score_vectors = np.ascontiguousarray(score_vectors, np.float64)
        self.content.p_values = np.ascontiguousarray(p_values, np.float64)

    def save(self) -> "Session":
        """Write it as the next revision; SessionError where somebody else's changes and these cannot both be kept."""
        if not isinstance(self.settings.aggregate, str):
            raise SettingError("A session keeps F by its name: use one of the named aggregates.")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self.folder / ".lock", timeout=LOCK_SECONDS):
                if (self.folder / store.FILE).exists():
                    self.content = merged(self.name, self.content, self._base, store.read(self.folder))
                for stored, data in self._files.items():
                    write_bytes(self.folder / "files" / stored, data)
                self.content.revision += 1
                store.write(self.folder, self.content)
        except Timeout as error:
            raise SessionError(
                f"The session {self.name} is being written by another program. Nothing is lost; save again in a moment."
            ) from error
        except OSError as error:
            raise could_not_write(self.folder, error) from error
        self._files, self._base = {}, _copy(self.content)
        return self

    # Its files and its detector.

    def read(self, item: Input) -> bytes:
        """The file of an input, as it is now."""
        if item.stored in self._files:
            return self._files[item.stored]
        return store.input_bytes(self.folder, item, modality_named(self.detector.modality).most_bytes)

    def samples(self) -> tuple[list[tuple[Input, Any]], list[str]]:
        """The inputs that are as they were, decoded, and a sentence for each that has changed or gone."""
        decoded, sentences = [], []
        for item in self.inputs:
            try:
                decoded.append((item, self.decoded(item)))
            except (SessionError, InputError) as error:
                sentences.append(str(error))
        return decoded, sentences

    def decoded(self, item: Input) -> Any:
        """An input's pixels or sound; SessionError where its content is no longer what was judged."""
        sample = modality_named(self.detector.modality).read(self.read(item), item.name)
        if content_of(sample) != item.content_hash:
            raise SessionError(
                f"{printable(item.name)} has changed since it was judged. The rest of the session is shown."
            )
        return sample

    def load_detector(self) -> "Detector":
        """The detector that judged; SessionError where the one of that name is another now."""
        from idecode_core.folder.detector import load_detector

        detector = load_detector(self.detector.folder or self.folder / "detector")
        here, _ = mark_of(detector, folder=self.detector.folder)
        if (here.scorer_sha256, here.calibration_sha256) != (
            self.detector.scorer_sha256,
            self.detector.calibration_sha256,
        ):
            raise SessionError(
                f"The detector {self.detector.name} has other weights or another calibration than when this session was "
                "made: its verdicts are still here, but cannot be computed again."
            )
        return detector

    # Looked up.

    def tagged(self, tag: str) -> list[Input]:
        """The inputs that have a tag."""
        return [item for item in self.inputs if tag in self.tags.get(item.content_hash, ())]

    @property
    def is_ood(self) -> list[bool]:
        """Which inputs are flagged under the settings."""
        cut = self.settings.cut(self.detector.k)
        return [bool(p < cut) for p in self.p_values]

    def to_frame(self) -> Any:
        """One row per input, as a pandas data frame."""
        return data_frame(
            {
                "file": [item.name for item in self.inputs],
                "is_ood": self.is_ood,
                "p_value": self.p_values,
                "tags": [", ".join(self.tags.get(item.content_hash, ())) for item in self.inputs],
                "note": [self.notes.get(item.content_hash, "") for item in self.inputs],
            }
        )

    def _hash(self, item: Input | str) -> str:
        """An input, its name or its content hash -> its content hash."""
        asked = item.content_hash if isinstance(item, Input) else item
        for known in self.inputs:
            if asked in (known.content_hash, known.name):
                return known.content_hash
        raise SettingError(
            f"This session has no input {printable(asked[:80])}: expected one of session.inputs."
        )


def mark_of(detector: "Detector", folder: str | None = None) -> tuple[Mark, bool]:
    """Who a detector is, and whether it has to be stored: it is none of those that are installed."""
    from idecode_core.folder.detector import scorer_hash
    from idecode_core.folder.listing import list_detectors
    from idecode_core.folder.manifest import read_calibration

    identity, calibration = scorer_hash(detector.scorer), detector.calibration.sha256
    if folder is None:
        folder = ""
        for config in list_detectors():
            if config.scorer_sha256 == identity and read_calibration(config).sha256 == calibration:
                folder = config.folder.name
                break
    k = detector.calibration.k
    return Mark(detector.name, folder, detector.scorer.modality, k, identity, calibration), not folder


def _copy(content: Content) -> Content:
    return replace(content, tags=dict(content.tags), notes=dict(content.notes))
