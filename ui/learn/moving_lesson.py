"""Lessons that move: their numbers in the link and in the session, the lesson itself in the browser; it is the one of try-it.html, the
same module and style, mounted by Streamlit. What is dragged changes there at once; the page hears of it when the drag has ended.

The last step of 'How it works' sends a picture along: a shoe, then the student's own photograph, goes through the lines that the arrow
went through.
"""

import re
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from idecode_core import conformal
from idecode_core.conformal.judge import judge
from lessons import PAGE, table
from ui.frame.cache import get_configs, get_detector, remembered
from ui.frame.links import link_value, one_of, put_in_link
from ui.frame.look import PRESENT
from ui.frame.pictures import bundled
from ui.frame.samples import Sample, data_uri, png
from ui.frame.uploads import one_picture

if TYPE_CHECKING:
    from idecode_core.detector import Detector
    from idecode_core.scorer import Inspected


def part(identifier: str) -> str:
    """The style or the script with this id, out of the page."""
    match = re.search(
        rf'<(style|script)[^>]* id="{identifier}">(.*?)</\1>', PAGE.read_text("utf-8"), re.DOTALL
    )
    assert match, f"{PAGE.name} has no part {identifier}"
    return match[2]


_lesson = st.components.v2.component("moving_lesson", css=part("lesson"), js=part("lesson-module"))


Numbers = dict[str, dict[str, Any]]
NUMBERS: dict[str, Numbers] = table("NUMBERS")
"""What can be dragged, chosen or typed in each lesson: name -> range or choices, and where it begins."""
NUMBERS["break"]["switch"]["choices"] = [switch["title"] for switch in table("SWITCHES")]


def show_step(step: int, lesson: str = "how", world: dict[str, Any] | None = None) -> None:
    """One of the module's `STEPS`, with the numbers of the link, else those that it had; in the link each is named `link` and its name.

    While it is shown it keeps its own; a new `version` says that the page's go first. `world` is what a step needs of the
    server, such as the picture of step 7. `presents`: for a projector, without the questions below.
    """
    numbers, link = NUMBERS[lesson], f"{lesson}_"
    _follow_link(numbers, link)
    data = {
        "step": step,
        "values": {name: st.session_state[link + name] for name in numbers},
        "version": st.session_state[f"{link}version"],
        "link": link,
        "world": world,
        "presents": bool(st.session_state.get(PRESENT)),
    }
    _lesson(key=f"lesson_{link}", data=data, on_values_change=partial(_take_changed, numbers, link))


def _follow_link(numbers: Numbers, link: str) -> None:
    """Numbers that the link has and had not when it was last looked at go first; then the link says what is shown."""
    state = st.session_state
    state.setdefault(f"{link}version", 0)
    seen = state.setdefault(f"{link}link", {})
    for name, number in numbers.items():
        key = link + name
        state.setdefault(key, number["start"])
        text = link_value(key)
        if text is not None and text != seen.get(key) and (asked := usable(number, text)) is not None:
            state[key] = asked
            state[f"{link}version"] += 1
        if text is None or usable(number, text) != state[key]:  # "5.0" is as good as "5", and stays
            shown = state[key] if isinstance(state[key], str) else f"{state[key]:.10g}"
            put_in_link(key, None if state[key] == number["start"] else shown)
        seen[key] = link_value(key)


def _take_changed(numbers: Numbers, link: str) -> None:
    """What the visitor has dragged the numbers to."""
    for name, value in (st.session_state[f"lesson_{link}"].get("values") or {}).items():
        if name in numbers and (changed := usable(numbers[name], str(value))) is not None:
            st.session_state[link + name] = changed


def usable(number: dict[str, Any], text: str) -> Any:
    """A number of a link or of the browser; None where the lesson does not have it."""
    choices = number.get("choices", [])
    try:
        value = type(choices[0] if choices else number.get("step", ""))(text)
    except ValueError:
        return None
    if choices or isinstance(value, str):
        return value if not choices or value in choices else None
    return value if number["min"] <= value <= number["max"] else None


NEWCOMERS = ("A shoe", "My photograph")
SHOE = 1  # the first shoe of the bundled Fashion-MNIST sample
SEED = 0
DETECTOR = "fashion-rotations"  # it comes with the package, and a shoe belongs for it
EPSILONS = tuple(percent / 100 for percent in range(1, 51))  # those that the lesson's epsilon can have
BINS = 48
LEAST = 1e-9  # on the axis of powers of ten: an error of 0 has no place there
KEPT = 4


def newcomer() -> dict[str, Any] | None:
    """What the lesson shows of the chosen picture; None while there is none."""
    config = get_configs().get(DETECTOR)
    if config is None:
        st.info("This step needs the detector fashion-rotations, which is not among the detectors here.")
        return None
    is_shoe = one_of("Newcomer", NEWCOMERS, "how_newcomer") == NEWCOMERS[0]
    help_text = "It is looked at on the machine that runs this app, and kept for your session only."
    sample = (
        bundled("fashion", SHOE, config.dataset)
        if is_shoe
        else one_picture("A photograph of yours", "own_photograph", help_text)
    )
    if sample is None:
        st.caption("Anything will do: what happens to a picture that is no clothing?")
        return None
    detector = get_detector(config)
    key = (detector, sample.content_hash)
    return remembered("lesson_store", KEPT, key, lambda: _through_algorithm_1(detector, sample))


def _through_algorithm_1(detector: "Detector", sample: Sample) -> dict[str, Any]:
    """Pictures and scores of every draw and, for each n, what the library says: the browser draws it and counts nothing."""
    n_max = detector.calibration.n_max
    inspected: Inspected = detector.inspect(sample.decode(), n=n_max, seed=SEED)
    by_draw = [list(group) for _, group in groupby(inspected.variants, key=lambda variant: variant.draw)]
    return {
        "name": sample.name,
        "picture": data_uri(sample.picture),
        "draws": [data_uri(png(_montage([view.image for view in group]))) for group in by_draw],
        "scores": inspected.score_vector.tolist(),
        "k": detector.calibration.k,
        "by_n": [judged(detector, inspected.score_vector, n) for n in range(1, n_max + 1)],
    }


def judged(detector: "Detector", score_vector: NDArray[np.float64], n: int) -> dict[str, Any]:
    """The verdict with the first n draws, the threshold for each epsilon, and the calibration scores as bars over powers of ten."""
    [verdict] = judge(detector.calibration, score_vector[None], n=n)
    scores = detector.calibration.scores(n)  # (k,)
    powers = np.log10(np.maximum([*scores, verdict.score], LEAST))
    low, high = float(powers.min()), float(powers.max())
    counts, _ = np.histogram(powers[:-1], BINS, (low, high))
    thresholds = [conformal.threshold(scores, epsilon) for epsilon in EPSILONS]
    return {
        "score": verdict.score,
        "rank": verdict.rank,
        "p": verdict.p_value,
        "low": low,
        "high": high,
        "counts": counts.tolist(),
        "thresholds": [value if np.isfinite(value) else None for value in thresholds],
    }


def _montage(images: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """The variants of one draw side by side, in two rows where there are four."""
    if len(images) != 4:
        return np.concatenate(images, axis=1)
    return np.concatenate([np.concatenate(images[:2], axis=1), np.concatenate(images[2:], axis=1)])
