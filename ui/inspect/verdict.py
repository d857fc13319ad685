"""The panels of the Inspect page. Each is a fragment that reads the settings as they are now and slices stored scores."""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite

import streamlit as st

from idecode_core.conformal.judge import Verdict
from idecode_core.detector import Detector
from idecode_core.folder.settings import FolderSettings
from idecode_core.plots import inspect as figures
from idecode_core.quality.strength import Caught, is_weak, power, power_sentence
from idecode_core.verdict import meaning
from ui.frame.cache import STORED_FILES, by_files, get_configs, get_detector
from ui.frame.detectors import in_order
from ui.frame.links import LINKED, put_in_link
from ui.frame.look import chart
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import Sample
from ui.frame.scores import coloured_answer, score_vectors, stored_or_none, verdicts
from ui.frame.settings import Chosen, current
from ui.inspect.batch import Batch, choose_rule, table
from ui.inspect.choose import as_the_model_sees_it
from ui.inspect.draws import chance, draws, explain, scores_chart
from ui.inspect.strange import strange


def show_power(config: FolderSettings, settings: Chosen) -> None:
    """One sentence; a weak detector is called weak, in the colour of a warning."""
    n = min(settings.n, config.n_max)
    caught = _caught(config, n, settings.epsilon, settings.aggregate)
    sentence = escape(power_sentence(caught, settings.epsilon))
    words = f":orange[:material/warning: {sentence}]" if is_weak(caught) else sentence
    st.markdown(
        f":small[**What {escape(config.name)} catches:** {words}]",
        help="  \n".join(f"{escape(ood_set.label)}: {ood_set.share:.0%}" for ood_set in caught) or None,
    )


@st.cache_resource(show_spinner=False, max_entries=64, hash_funcs=by_files(*STORED_FILES))
def _caught(config: FolderSettings, n: int, epsilon: float, aggregate: str) -> tuple[Caught, ...]:
    """Kept for all visitors; nothing where no scores are stored."""
    stored = stored_or_none(config)
    return power(stored, n, epsilon, aggregate) if stored else ()


@panel("files", on=(*JUDGED, "row", "rule", "tags", "arranged"))
def files(batch: Batch) -> None:
    """The table of many files."""
    if len(batch.samples) > 1:
        choose_rule()
        batch.judge()
        batch.look()
        table(batch.samples, batch.judgement, batch.row)


@panel("picture", on=("row",))
def picture(batch: Batch) -> None:
    """What is judged."""
    sample = batch.look()
    sample.modality.show(sample)


@panel("verdict", on=(*JUDGED, "row", "rule"))
def words(batch: Batch) -> None:
    """The verdict in words. The link follows the row."""
    batch.judge()
    sample = batch.look()
    put_in_link("sample", sample.address)
    show_words(sample, batch.judgement[batch.row])


@panel("power", on=JUDGED)
def caught(config: FolderSettings) -> None:
    """What the detector catches at these settings."""
    show_power(config, current())


@panel("aggregate", on=(*JUDGED, "row", "rule"))
def aggregate(batch: Batch) -> None:
    """The aggregate on the calibration histogram. Runs after the verdict, and shows the same."""
    show_aggregate(batch.detector, batch.judgement[batch.row], batch.settings)


@panel("closer", on=("n", "row"))
def closer(batch: Batch) -> None:
    """What else there is to see of the input."""
    settings, sample, inspected = current(), batch.look(), batch.inspect()
    as_the_model_sees_it(batch.detector, sample, settings.seed)
    if sample.modality.closer:
        sample.modality.closer(batch.detector, sample, inspected, settings.n)


def results(batch: Batch) -> None:
    """The verdict in words, the aggregate on the calibration histogram, and for many files the table.

    Small panels: a move of epsilon draws again what shows epsilon, and neither pictures nor sounds.
    """
    files(batch)
    with st.container(horizontal=True, vertical_alignment="center", key="picture"):
        with st.container(width=batch.samples[0].modality.width):
            picture(batch)
        with st.container(width="stretch", gap="xsmall"):
            words(batch)
    if batch.config.n_max == 1:
        aggregate(batch)
        caught(batch.config)
        return
    draws(batch)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(
            "### Non-conformity score (NCM) per transform",
            help="How strange each variant is to the model, higher is stranger. The grey band "
            "holds the middle 90 % of the calibration set's. Choose a point or a picture to enlarge that draw.",
        )
        scores_chart(batch)
    with right:
        st.markdown(
            "### All of them as one score, F(V)",
            help="The scores of the n transforms together, among those of the calibration set. Its rank "
            "there gives the p-value.",
        )
        aggregate(batch)
    caught(batch.config)


def depth(batch: Batch) -> None:
    """What there is beyond the verdict, one tab for each question."""
    sound = batch.samples[0].modality.closer is not None
    tabs: dict[str, Callable[[Batch], None]] = {
        "Why this score": explain,
        "Where is it strange?": strange,
        f"What the model {'hears' if sound else 'sees'}": closer,
        "A second opinion": versus,
    }
    if batch.config.n_max > 1:
        tabs["More draws, other draws"] = chance
    for tab, show in zip(st.tabs(list(tabs)), tabs.values(), strict=True):
        with tab:
            show(batch)


def show_words(sample: Sample, verdict: Verdict, *, brief: bool = False) -> None:
    """The verdict as a sentence, and what it means; where it has to be brief, for who points at it."""
    answer, reason = coloured_answer(verdict, sample.modality.noun)
    means, does_not = meaning(verdict, sample.modality.noun)
    st.caption(f"{escape(sample.name)} · {sample.truth}" if sample.truth else escape(sample.name))
    words = f"**It means:** {means}  \n**It does not mean:** {does_not}"
    st.markdown(f"## {answer} {reason}", help=words if brief else None)
    if not brief:
        st.markdown(words)


def show_aggregate(
    detector: Detector,
    verdict: Verdict,
    settings: Chosen,
    height: int = 216,
    key: str = "aggregate_chart",
) -> None:
    limit = f"above {verdict.threshold:.3g} inputs" if isfinite(verdict.threshold) else "no inputs"
    chart(
        figures.aggregate_on_histogram(
            detector.calibration.scores(settings.n, settings.aggregate),
            verdict.score,
            verdict.threshold,
            is_ood=verdict.is_ood,
            height=height,
        ),
        key=key,
        alt=f"Histogram of calibration scores; this input scores {verdict.score:.3g}, {limit} are flagged",
    )


@panel("versus", on=(*JUDGED, "row", "rule"))
def versus(batch: Batch) -> None:
    """A second detector to choose, and then two columns. Each file alone: a batch is judged by one detector."""
    settings, sample, config, configs = current(), batch.look(), batch.config, get_configs()
    others = [
        name
        for name in in_order(configs)
        if configs[name].modality == config.modality and name != settings.detector
    ]
    if not others:
        return
    if st.session_state.get("versus") not in others:
        st.session_state.pop("versus", None)
    chosen = st.selectbox(
        "A second opinion",
        others,
        index=None,
        placeholder="Another detector on the same file",
        label_visibility="collapsed",
        key="versus",
        **LINKED,
    )
    if chosen is None:
        return
    both = (config, configs[chosen])
    seen = [side(judge, sample, settings) for judge in both]
    if seen[0].is_ood != seen[1].is_ood:
        st.markdown("**They disagree:** they know different things, or look for different signs.")
    if batch.judgement.together:
        st.caption("Here both judge this file alone; above, it is judged together with the others.")
    st.caption(
        f"Each keeps its own promise. Who flags what either of them flags may raise up to twice as many false alarms, "
        f"{2 * settings.epsilon:g} in place of {settings.epsilon:g}."
    )
    for column, judge, verdict in zip(st.columns(2, gap="large"), both, seen, strict=True):
        with column:
            show_side(judge, sample, verdict, settings)


def side(config: FolderSettings, sample: Sample, settings: Chosen) -> Verdict:
    """What one detector says of the file, alone."""
    detector = get_detector(config)
    vectors = score_vectors(detector, [sample], settings.seed)
    [verdict] = verdicts(detector, [sample.content_hash], vectors, settings)
    return verdict


def show_side(config: FolderSettings, sample: Sample, verdict: Verdict, settings: Chosen) -> None:
    answer, reason = coloured_answer(verdict, sample.modality.noun)
    st.markdown(f"**{escape(config.name)}**, which knows {escape(config.summary or 'what its card says')}")
    st.markdown(f"**{answer}** {reason}")
    show_power(config, settings)
    detector = get_detector(config)
    usable = replace(settings, n=min(settings.n, detector.calibration.n_max))
    show_aggregate(detector, verdict, usable, height=220, key=f"versus_chart_{config.folder.name}")
