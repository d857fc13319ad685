"""Two detectors on one file: both verdicts side by side."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from idecode_core.conformal.judge import Verdict
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import in_order
from ui.frame.links import carry_over, keep
from ui.frame.messages import escape
from ui.frame.panels import panel
from ui.frame.samples import Sample
from ui.frame.scores import score_vectors
from ui.frame.settings import Settings, current
from ui.frame.verdicts import coloured_answer, verdicts
from ui.inspect.batch import chosen_row
from ui.inspect.power import show_power


@panel("versus")
def versus(config: FolderSettings, samples: Sequence[Sample]) -> None:
    """A second detector to choose, and then two columns. Each file alone: a batch is judged by one detector."""
    settings, sample = current(), samples[chosen_row(samples)]
    configs = get_configs()
    others = [
        name
        for name in in_order(configs)
        if configs[name].modality == config.modality and name != settings.detector
    ]
    if not others:
        return
    carry_over(["versus"])
    if st.session_state.get("versus") not in others:
        st.session_state.pop("versus", None)
    chosen = st.selectbox(
        "A second opinion",
        others,
        index=None,
        placeholder="Another detector on the same file",
        key="versus",
        bind="query-params",
    )
    keep(["versus"])
    if chosen is None:
        return
    seen = [side(one, sample, settings) for one in (config, configs[chosen])]
    if seen[0].is_ood != seen[1].is_ood:
        st.markdown("**They disagree:** they know different things, or look for different signs.")
    if len(samples) > 1 and st.session_state.get("rule") == "together":
        st.caption("Here both judge this file alone; above, it is judged together with the others.")
    st.caption(
        f"Each keeps its own promise. Who flags what either of them flags may raise up to twice as many false alarms, "
        f"{2 * settings.epsilon:g} in place of {settings.epsilon:g}."
    )
    for column, one, verdict in zip(st.columns(2, gap="large"), (config, configs[chosen]), seen, strict=True):
        with column:
            show_side(get_detector(one), one, sample, verdict, settings)


def side(config: FolderSettings, sample: Sample, settings: Settings) -> Verdict:
    """What one detector says of the file, alone."""
    detector = get_detector(config)
    vectors = score_vectors(detector, [sample], settings.seed)
    [verdict] = verdicts(detector, [sample.content_hash], vectors, settings)
    return verdict


def show_side(
    detector: Detector, config: FolderSettings, sample: Sample, verdict: Verdict, settings: Settings
) -> None:
    from ui.inspect.panels import show_aggregate

    answer, reason = coloured_answer(verdict, sample.modality.noun)
    st.markdown(f"**{escape(config.name)}**, which knows {escape(config.summary or 'what its card says')}")
    st.markdown(f"**{answer}** {reason}")
    show_power(config, settings)
    own = replace(settings, n=min(settings.n, detector.calibration.n_max))
    show_aggregate(detector, verdict, own, height=220, key=f"versus_chart_{config.folder.name}")
