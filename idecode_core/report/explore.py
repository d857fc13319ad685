"""Sliders for n and epsilon in a notebook: ipywidgets around Plotly's FigureWidget. They slice what is scored already."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from idecode_core.errors import SettingError
from idecode_core.report.show import roc_figure, score_figure
from idecode_core.verdict import sentence

if TYPE_CHECKING:
    from idecode_core.quality.methods import Evaluation
    from idecode_core.scorer import Inspected

MISSING = 'Sliders in a notebook need more packages: run `pip install "idecode-studio[notebook]"`, then start the kernel again.'
WIDE = {"width": "460px"}


def explore_inspected(inspected: "Inspected") -> Any:
    """The verdict in a sentence, and where the score lies among the calibration scores."""
    score_figure(inspected)  # which says what is missing where it cannot be
    seen = inspected.seen
    assert seen is not None
    noun = seen.detector.scorer.modality.replace("audio", "sound")

    def look(n: int, epsilon: float) -> tuple[str, Any]:
        verdict, figure = score_figure(inspected, n, epsilon)
        return sentence(verdict, noun), figure

    return sliders(look, inspected.score_vector.size, seen.settings.n or 1, seen.settings.epsilon)


def explore_evaluation(evaluation: "Evaluation") -> Any:
    """The ROC curve, and what epsilon catches on it."""
    from idecode_core.folder.shelf import DRAWS_PER_RUN
    from idecode_core.quality.methods import evaluate, flagged_share

    source = evaluation.source
    if source is None or source.calibration is None:
        raise SettingError(
            "Only an evaluation with a calibration can be explored: make it with `evaluate(calibration, ...)`."
        )
    calibration, sets = source.calibration, (source.id_set, source.ood_set)

    def look(n: int, epsilon: float) -> tuple[str, Any]:
        evaluated = evaluate(calibration, *sets, n, source.aggregate, source.method)
        false, caught = (
            flagged_share(calibration, score_set.score_vectors, n, epsilon, source.aggregate)
            for score_set in sets
        )
        words = (
            f"AUROC {evaluated.auroc.mean:.1%}; at epsilon = {epsilon:g}, {caught:.1%} of {source.ood_set.label} are flagged, "
            f"and {false:.1%} of {source.id_set.label}."
        )
        return words, roc_figure(evaluated, n, epsilon)

    most = min(DRAWS_PER_RUN, calibration.n_max, *(score_set.score_vectors.shape[1] for score_set in sets))
    return sliders(look, most, source.n, 0.05)


def sliders(look: Callable[[int, float], tuple[str, Any]], n_max: int, n: int, epsilon: float) -> Any:
    """`look` gives the words and the figure for an n and an epsilon."""
    try:
        from ipywidgets import HTML, IntSlider, SelectionSlider, VBox
        from plotly.graph_objects import FigureWidget

        words, figure = look(n, epsilon)
        shown = FigureWidget(figure)
    except ImportError as error:  # plotly asks for anywidget when the widget is made
        raise SettingError(MISSING) from error
    from markupsafe import escape

    text = HTML(str(escape(words)))
    count = IntSlider(n, 1, n_max, description="n", layout=WIDE, continuous_update=False)
    steps = sorted({epsilon, *(i / 1000 for i in range(1, 50)), *(i / 100 for i in range(5, 51))})
    named = [(f"{step:g}", step) for step in steps]
    share = SelectionSlider(options=named, value=epsilon, description="epsilon", layout=WIDE)

    def move(_: object) -> None:
        words, figure = look(count.value, share.value)
        text.value = str(escape(words))
        with shown.batch_update():
            shown.data = []
            shown.add_traces(list(figure.data))
            shown.layout = figure.layout

    for slider in (count, share):
        slider.observe(move, "value")
    return VBox([count, share, text, shown] if n_max > 1 else [share, text, shown])
