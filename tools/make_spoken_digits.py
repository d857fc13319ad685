"""Make the spoken digits of the detector `spoken-digits` with espeak-ng, and the sounds that are not digits.

    python tools/make_spoken_digits.py data            # spokendigits-train.npz and othersounds-test.npz
    python tools/make_spoken_digits.py data --gallery  # also the clips that come with the project (FLAC)

Every clip is an independent draw of digit, voice, speed, pitch, place, level and background noise, so training,
calibration and test clips are exchangeable. Needs espeak-ng (Debian's package; GPL-3, its output is free to use).
"""

import argparse
import subprocess
from pathlib import Path

import numpy as np
import soundfile

from idecode_core.audio.read import Samples, read_sound
from idecode_core.files import write_npz
from tools.synthetic_sounds import MAKERS, in_a_room, normalised

RATE = 16_000
SECONDS = 1.1
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ACCENTS = (
    "en-gb",
    "en-us",
    "en-gb-scotland",
    "en-gb-x-gbclan",
    "en-gb-x-rp",
    "en-gb-x-gbcwmd",
    "en-029",
    "en-us-nyc",
)
VOICES = (
    *(
        "m1",
        "m2",
        "m3",
        "m4",
        "m5",
        "m6",
        "m7",
        "m8",
        "f1",
        "f2",
        "f3",
        "f4",
        "f5",
        "Alex",
        "Alicia",
        "Andrea",
    ),
    *("Andy", "Annie", "Denis", "Diogo", "Gene", "Hugo", "Jacky", "Lee", "Marco", "Michael", "Mike", "adam"),
    *("antonio", "aunty", "belinda", "benjamin", "boris", "david", "ed", "edward", "iven", "john", "linda"),
    *(
        "max",
        "michel",
        "pablo",
        "paul",
        "pedro",
        "quincy",
        "rob",
        "robert",
        "steph",
        "travis",
        "victor",
        "zac",
    ),
    *("klatt", "klatt2", "klatt3", "klatt4", "grandma", "grandpa"),
)
TRAINING, CALIBRATION, TEST = 0, 1, 2
COUNTS = {TRAINING: 1400, CALIBRATION: 1000, TEST: 500}
OTHERS_PER_KIND = 100
GALLERY = Path(__file__).parent.parent / "idecode_core" / "embedded" / "sounds"


def speak(word: str, voice: str, speed: int, pitch: int) -> Samples:
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", word]
    wav = subprocess.run(command, capture_output=True, check=True).stdout
    return read_sound(wav, name=f"{word} by {voice}").at(RATE).samples


def trimmed(wave: Samples, floor: float = 0.01) -> Samples:
    """Without the silence at both ends."""
    loud = np.flatnonzero(np.abs(wave) > floor * np.abs(wave).max())
    return wave[loud[0] : loud[-1] + 1]


def digit_clip(digit: int, *, generator: np.random.Generator) -> Samples:
    """One clip of SECONDS: a digit somewhere in it."""
    accent, voice = generator.choice(ACCENTS), generator.choice(VOICES)
    speed, pitch = int(generator.integers(110, 211)), int(generator.integers(20, 81))
    spoken = trimmed(normalised(speak(WORDS[digit], f"{accent}+{voice}", speed, pitch)))
    wave = np.zeros(round(SECONDS * RATE), np.float32)
    spoken = spoken[: len(wave)]
    first = int(generator.integers(0, len(wave) - len(spoken) + 1))
    wave[first : first + len(spoken)] = spoken
    return in_a_room(wave, generator=generator)


def write_set(
    path: Path, clips: list[Samples], y: list[int], classes: tuple[str, ...], fold: list[int]
) -> None:
    arrays = {
        "x": np.concatenate([np.round(clip * 32767).astype(np.int16) for clip in clips]),
        "offsets": np.cumsum([0, *(len(clip) for clip in clips)]),
        "y": np.array(y),
        "sample_rate": np.array(RATE),
        "classes": np.array(classes),
        "fold": np.array(fold, np.uint8),
    }
    write_npz(path, arrays)


def make_digits(path: Path, seed: int) -> None:
    generator = np.random.default_rng([seed, 0])
    clips, y, fold = [], [], []
    for part, count in COUNTS.items():
        for digit in generator.integers(0, 10, size=count).tolist():
            clips.append(digit_clip(digit, generator=generator))
            y.append(digit)
            fold.append(part)
    write_set(path, clips, y, WORDS, fold)


def make_others(path: Path, seed: int) -> None:
    generator = np.random.default_rng([seed, 1])
    clips, y = [], []
    for kind, make in enumerate(MAKERS.values()):
        for _ in range(OTHERS_PER_KIND):
            clips.append(in_a_room(make(SECONDS, RATE, generator=generator), generator=generator))
            y.append(kind)
    write_set(path, clips, y, tuple(MAKERS), [TEST] * len(y))


def make_gallery(folder: Path, seed: int) -> None:
    """Clips that come with the project, drawn apart: they are in neither the training nor the calibration set."""
    generator = np.random.default_rng([seed, 2])
    for digit, word in enumerate(WORDS):
        write_clip(folder / f"digit-{digit}-{word}.flac", digit_clip(digit, generator=generator))
    for kind, make in MAKERS.items():
        for number in (1, 2):
            wave = in_a_room(make(SECONDS, RATE, generator=generator), generator=generator)
            write_clip(folder / f"other-{kind.replace(' ', '-')}-{number}.flac", wave)


def write_clip(path: Path, wave: Samples) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, wave, RATE, subtype="PCM_16")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the data root")
    parser.add_argument(
        "--gallery", action="store_true", help="also write the clips that come with the project"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    make_digits(options.folder / "spokendigits-train.npz", options.seed)
    make_others(options.folder / "othersounds-test.npz", options.seed)
    if options.gallery:
        make_gallery(GALLERY, options.seed)
