"""From a number to its pictures: the worst misses and the worst false alarms of an evaluation."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.extremes import Extremes, extremes
from ui.evaluate.source import Source
from ui.frame.cache import get_configs, get_detector
from ui.frame.links import LINKED
from ui.frame.samples import THUMBNAIL, smaller

SHOWN = 8  # of each kind
CHECKED = 3  # draws, to see that a picture is the one that was scored


def worst(source: Source, ood_set: ScoreSet, n: int, epsilon: float, aggregate: str) -> None:
    """What does not belong and looks most ordinary, and what belongs and looks strangest, as pictures, once asked for."""
    if not st.toggle(
        "Show the worst misses and the worst false alarms",
        key="ev_worst",
        help="The OOD points that look most ordinary to the detector, and the iD points that look strangest, as pictures.",
        **LINKED,
    ):
        return
    sides = (
        ("The worst misses", ood_set, True, "do not belong and look most ordinary"),
        ("The worst false alarms", source.id_set, False, "belong and look strangest"),
    )
    for title, score_set, is_ood, words in sides:
        extreme = extremes(source.calibration, score_set, n, epsilon, aggregate, most=SHOWN)
        st.markdown(f"## {title}")
        st.caption(f"Those of {score_set.label} that {words}. {counted(extreme, is_ood, epsilon)}")
        pictures = _pictures(source, score_set, tuple(extreme.places))
        if pictures is None:
            st.caption(
                f"The pictures of {score_set.label} that were scored are not here: {_how(source, score_set)} "
                f"Their rows are {', '.join(str(i + 1) for i in extreme.places)}."
            )
            continue
        with st.container(horizontal=True, key=f"ev_worst_{'ood' if is_ood else 'id'}"):
            for place, picture, value, flagged in zip(
                extreme.places, pictures, extreme.values, extreme.is_flagged, strict=True
            ):
                name = "score" if source.calibration is None else "p"
                mark = ":orange[flagged]" if flagged else ":blue[not flagged]"
                with st.container(width=96, gap="xsmall"):
                    st.image(picture, width=88)
                    st.caption(
                        f"row {place + 1}  \n{name} = {value:.3g}"
                        + (f"  \n{mark}" if source.calibration else "")
                    )


def counted(extreme: Extremes, is_ood: bool, epsilon: float) -> str:
    if extreme.flagged is None:
        return "Without calibration scores there is no threshold; they are ranked by their scores."
    missed = extreme.points - extreme.flagged if is_ood else extreme.flagged
    what = "missed" if is_ood else "flagged"
    return f"At epsilon = {epsilon:g}, {missed:,} of {extreme.points:,} are {what}."


def _pictures(source: Source, score_set: ScoreSet, places: tuple[int, ...]) -> Sequence[bytes] | None:
    """From the visitor's files, or from the dataset on this machine; None where neither is here."""
    if score_set.name in source.files:
        return [source.files[score_set.name][i].thumbnail for i in places]
    return _from_dataset(source, score_set, places) if source.shared else None


@st.cache_data(
    show_spinner="Looking for the pictures ...",
    max_entries=40,
    hash_funcs={Source: lambda source: source.key, ScoreSet: lambda score_set: score_set.name},
)
def _from_dataset(source: Source, score_set: ScoreSet, places: tuple[int, ...]) -> list[bytes] | None:
    """The pictures of these rows, where the dataset here is the one that was scored: the first of them is scored again."""
    from idecode_core.image.sets import load_images
    from idecode_core.quality.sets import pick

    config = get_configs().get(Path(source.folder).name)
    if config is None or config.modality != "image":
        return None
    try:
        x = list(pick(load_images(score_set.name), len(score_set)).samples)
    except IdecodeError:
        return None
    if len(x) != len(score_set):
        return None
    seed = source.calibration.seed if source.calibration is not None else 0
    again = get_detector(config).score_vectors([x[places[0]]], n=CHECKED, seed=seed)[0]
    if not np.allclose(again, score_set.score_vectors[places[0], :CHECKED], rtol=1e-2, atol=1e-3):
        return None  # another edition of the dataset, with other pictures in these rows
    return [smaller(x[i], THUMBNAIL) for i in places]


def _how(source: Source, score_set: ScoreSet) -> str:
    if not source.shared:
        return "scores came without files; bring the files under *My files*."
    return "put the dataset into the data folder (`idecode data` says where) and look again."
