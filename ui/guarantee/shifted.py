"""The source has shifted: calibration weighted for an unlabelled batch of new inputs, and what that brings and costs."""

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from idecode_core.conformal.calibration import Calibration, aggregate_scores
from idecode_core.conformal.same_source import compare
from idecode_core.conformal.weighted import (
    SHIFT_NOT_PROMISED,
    SHIFT_PROMISE,
    UnderShift,
    under_shift,
    what_it_costs,
)
from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from idecode_core.folder.stored import Stored
from ui.frame.links import LINKED, one_of
from ui.frame.messages import escape
from ui.frame.settings import Chosen
from ui.frame.uploads import many_files, score_files

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILES, TABLE, SESSION, STORED = "Files", "Scores", "The session", "A stored set"
SLOTS = {
    "shift": (
        "Scores of the new source",
        "Of this detector: one row per input and one column per draw, or what `score` writes. CSV, Parquet, npy or npz.",
    )
}


def shifted(
    config: FolderSettings, stored: Stored | None, calibration: Calibration, n: int, settings: Chosen
) -> None:
    """The switch, a batch, and below it whether there is a shift, the rates without and with weights, and the price."""
    st.markdown("## A new source")
    if not st.toggle(
        "The source has shifted", key="g_shifted", **LINKED,
        help="The inputs of today come in other shares than those of the calibration set: more of one kind, less of another.",
    ):  # fmt: skip
        return
    try:
        vectors = batch(config, stored)
        if vectors is None:
            return
        n = min(n, vectors.shape[1])
        sets = stored.ood_sets if stored else []
        known = calibration.scores(n, settings.aggregate)
        new = aggregate_scores(vectors[:, :n], settings.aggregate)
        comparison = compare(new, known)
        not_needed = (
            "" if comparison.differs() else " Weights would then follow chance: better leave the switch off."
        )
        st.markdown(f"**Is there a shift?** {comparison.reading()}{not_needed}")
        shift = under_shift(
            known,
            new,
            *(aggregate_scores(score_set.score_vectors[:, :n], settings.aggregate) for score_set in sets),
            epsilon=settings.epsilon,
            generator=np.random.default_rng(settings.seed),
        )
    except IdecodeError as error:
        st.warning(escape(str(error)), icon=":material/warning:")
        return
    result(shift, [score_set.label for score_set in sets], calibration.k, settings.epsilon)


def batch(config: FolderSettings, stored: Stored | None) -> "NDArray[Any] | None":
    """Score vectors of an unlabelled batch of the new source, (inputs, draws); None as long as there is none."""
    from ui.frame.samples import modality_of
    from ui.frame.session import from_session, sources

    offered = [FILES, TABLE, *([SESSION] if sources() else []), *([STORED] if stored else [])]
    if st.session_state.get("g_shifted_from") not in offered:
        st.session_state.pop("g_shifted_from", None)
    chosen = one_of("The new source", offered, "g_shifted_from", bind=None)
    if chosen == STORED and stored:
        labels = {score_set.label: score_set for score_set in (stored.id_set, *stored.ood_sets)}
        label = st.selectbox("Set", list(labels), key="g_shifted_set", label_visibility="collapsed")
        return np.asarray(labels[str(label)].score_vectors) if label in labels else None
    if chosen == TABLE:
        files = score_files("guarantee", SLOTS, lambda name, data: (name, data))
        from idecode_core.files.archives import File
        from idecode_core.files.tables import read_table

        return read_table(File(*files["shift"])).vectors() if "shift" in files else None
    modality = modality_of(config)
    samples = (
        from_session(config, modality)
        if chosen == SESSION
        else many_files("Inputs of the new source", "g_shift", modality, compact=True, copies=True)
    )
    if not samples:
        st.caption(
            "Bring inputs as they come today, unlabelled; one half teaches the weights, the other tries them."
        )
        return None
    from ui.frame.scores import score_on_click

    scored = score_on_click("g_shift", config, samples)
    return None if scored is None else scored[0]


def result(shift: UnderShift, labels: list[str], k: int, epsilon: float) -> None:
    """The rates without and with weights, then what is caught of what does not belong."""
    plain, weighted = shift.rates[0]
    size, before, after = st.columns(3, gap="large")
    size.metric(
        "Effective sample size",
        f"{shift.effective:,.0f} of {k:,}",
        help=what_it_costs(shift.weights, epsilon),
    )
    before.metric(
        "Flagged without weights", f"{plain.rate:.1%}", help=f"{plain.flagged:,} of {plain.total:,} inputs."
    )
    after.metric(
        "Flagged with weights",
        f"{weighted.rate:.1%}",
        help=f"{weighted.flagged:,} of {weighted.total:,} inputs.",
    )
    st.markdown(
        f"Of the {plain.total:,} inputs that taught the weights nothing. If all of them belong, it should be at most about {epsilon:g}."
    )
    if labels:
        st.markdown("**The price in power**")
        st.dataframe(
            [
                {"Does not belong": label, "Caught without weights": f"{without.rate:.1%}", "Caught with weights": f"{with_weights.rate:.1%}"}
                for label, (without, with_weights) in zip(labels, shift.rates[1:], strict=True)
            ],
            hide_index=True,
            key="g_shifted_table",
        )  # fmt: skip
    left, right = st.columns(2, gap="large")
    left.markdown(f"**Promised.** {SHIFT_PROMISE}")
    right.markdown(f"**Not promised.** {SHIFT_NOT_PROMISED}")
