"""Results that show themselves in a notebook: HTML tables with small pictures, and the figures of the pages.

All that comes from files, sessions or users is text here: MarkupSafe escapes it. A notebook draws figures as it draws Plotly's
own; where there is only HTML, they stand in frames of their own, because a result's HTML may not run scripts.
"""

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from idecode_core.conformal.judge import judge
from idecode_core.errors import IdecodeError, SettingError
from idecode_core.report.html import data_uri

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Verdict
    from idecode_core.conformal.statement import Guarantee
    from idecode_core.detector import Detection
    from idecode_core.quality.methods import Evaluation
    from idecode_core.scorer import Inspected
    from idecode_core.session import Session

ROWS, THUMBNAIL, VARIANTS = 30, 56, 20
COLOURS = {"flagged": "#BF5000", "not flagged": "#0072B2"}
"""Of the verdicts: white on them can be read in a light notebook and in a dark one."""
Parts = list[Any]
"""Markup, and Plotly figures between."""
CELL = Markup('<td style="text-align:left;padding:2px 12px 2px 0">{}</td>')


def parts_of(shown: object) -> Parts:
    """What is to be seen of a result; by the names of its classes, so that nothing is imported that is not there already."""
    known: dict[str, Callable[[Any], Parts]] = {
        "Detection": detection_parts,
        "Inspected": inspected_parts,
        "Evaluation": evaluation_parts,
        "Guarantee": guarantee_parts,
        "Session": session_parts,
    }
    parts = next((known[kind.__name__] for kind in type(shown).__mro__ if kind.__name__ in known), None)
    return parts(shown) if parts else [Markup("<pre>{}</pre>").format(repr(shown))]


def as_html(shown: object) -> str:
    """One piece of HTML; its figures need the network for Plotly's script."""
    return "".join(part if isinstance(part, str) else figure_frame(part) for part in parts_of(shown))


def display(shown: object) -> None:
    """In a notebook: HTML and Plotly figures one after the other; elsewhere the plain lines."""
    from IPython import get_ipython
    from IPython.display import display as untyped

    show: Callable[..., object] = untyped

    if type(get_ipython()).__name__ != "ZMQInteractiveShell":  # a terminal
        print(repr(shown))
        return
    for part in parts_of(shown):
        show({"text/html": str(part), "text/plain": repr(shown)}, raw=True) if isinstance(
            part, str
        ) else show(part)


def figure_frame(figure: Any) -> Markup:
    page = figure.to_html(include_plotlyjs="cdn", full_html=True, config={"displaylogo": False})
    style = f"border:0;width:100%;height:{int(figure.layout.height or 320) + 30}px"
    return Markup('<iframe srcdoc="{}" style="{}"></iframe>').format(page, style)


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    head = Markup("").join(
        Markup('<th style="text-align:left;padding-right:12px">{}</th>').format(t) for t in titles
    )
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(CELL.format(value) for value in row)) for row in rows
    )
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)


def picture(pixels: Any, words: str) -> Markup:
    """A small PNG of decoded pixels (h, w, 3)."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((2 * THUMBNAIL, 2 * THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    style = f"height:{THUMBNAIL}px;image-rendering:pixelated"
    return Markup('<img src="{}" alt="{}" style="{}">').format(data_uri(buffer.getvalue()), words, style)


def verdict_words(is_ood: bool, shown: str = "") -> Markup:
    word = "flagged" if is_ood else "not flagged"
    style = f"background:{COLOURS[word]};color:#fff;padding:1px 7px;border-radius:4px"
    return Markup('<b style="{}">{}</b>').format(style, shown or word)


def thumbnails(detection: "Detection", places: Sequence[int]) -> list[Any]:
    """A picture for each of these points, or nothing where it cannot be had any more."""
    if detection.detector.scorer.modality != "image":
        return [""] * len(places)
    pictures: list[Any] = []
    for i in places:
        try:
            source = detection.names[i] if detection.names else detection.samples[i]
            (pixels,) = detection.detector.scorer.decode([source])
            pictures.append(picture(pixels, str(detection.names[i] if detection.names else i)))
        except (IdecodeError, TypeError, ValueError, IndexError):
            pictures.append(Markup("<i>gone</i>") if detection.names else "")
    return pictures


def detection_parts(detection: "Detection") -> Parts:
    """How many are flagged, where the p-values lie, and the strangest points with their pictures."""
    order = np.lexsort((-detection.scores, detection.p_values))[:ROWS].tolist()
    lead = Markup("<p><b>{:,} of {:,} flagged</b> at epsilon = {:g} (k = {:,})</p>").format(
        int(detection.is_ood.sum()), len(detection), detection.promised, detection.k
    )
    rows = [
        (
            image,
            detection.names[i] if detection.names else f"point {i}",
            verdict_words(bool(detection.is_ood[i])),
            f"{detection.p_values[i]:.3g}",
            f"{detection.scores[i]:.4g}",
        )
        for i, image in zip(order, thumbnails(detection, order), strict=True)
    ]
    more = len(detection) - len(order)
    rest = (
        Markup("<p>... and {:,} less strange; to_frame() has all.</p>").format(more) if more else Markup("")
    )
    shown = table(("", "file" if detection.names else "point", "verdict", "p-value", "score"), rows)
    return [lead + p_value_bars(detection.p_values, detection.epsilon) + shown + rest]


def p_value_bars(p_values: NDArray[np.float64], epsilon: float) -> Markup:
    """A histogram of p-values as a small drawing; those below epsilon in the colour of a flag."""
    bins, wide, high = 20, 16, 60
    counts, edges = np.histogram(p_values, np.linspace(0, 1, bins + 1))
    flagged, _ = np.histogram(p_values[p_values < epsilon], edges)
    top = max(int(counts.max()), 1)
    bars = []
    for i, (count, strange) in enumerate(zip(counts.tolist(), flagged.tolist(), strict=True)):
        for number, colour in ((count, COLOURS["not flagged"]), (strange, COLOURS["flagged"])):
            if number:
                tall = high * number / top
                bars.append(
                    f'<rect x="{i * wide}" y="{high - tall:.1f}" width="{wide - 2}" height="{tall:.1f}" fill="{colour}"/>'
                )
    return Markup(
        f'<svg width="{bins * wide}" height="{high + 16}" role="img" aria-label="histogram of p-values">{"".join(bars)}'
        f'<text x="0" y="{high + 13}" font-size="11" fill="#7B8794">p = 0</text>'
        f'<text x="{bins * wide - 32}" y="{high + 13}" font-size="11" fill="#7B8794">p = 1</text></svg>'
    )


def inspected_parts(inspected: "Inspected") -> Parts:
    """The verdict in a sentence, where the score lies, the variants with their scores, and why the strangest draw scores so."""
    from idecode_core.verdict import sentence

    seen, parts = inspected.seen, Parts()
    if seen is not None:
        verdict = seen.verdict
        noun = seen.detector.scorer.modality.replace("audio", "sound")
        answer, _, reason = sentence(verdict, noun).partition(": ")
        parts.append(Markup("<p>{} {}</p>").format(verdict_words(verdict.is_ood, answer), reason))
        parts.append(score_figure(inspected)[1])
    why = Markup("<p>Why the strangest draw scores {:.3g}:</p>").format(inspected.score_vector.max())
    return [*parts, variants_html(inspected) + why, waterfall(inspected)]


def variants_html(inspected: "Inspected") -> Markup:
    cells = Markup("").join(
        Markup("<div>{}<br>{}<br><b>{:.3g}</b></div>").format(
            picture(variant.image, variant.applied), variant.applied, variant.score
        )
        for variant in inspected.variants[:VARIANTS]
    )
    style = "display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;font-size:85%"
    return Markup('<p>What the network saw, and the score of each:</p><div style="{}">{}</div>').format(
        style, cells
    )


def score_figure(
    inspected: "Inspected", n: int | None = None, epsilon: float | None = None
) -> tuple["Verdict", Any]:
    """The verdict, and F(V(x)) among the calibration scores as on the Inspect page."""
    from idecode_core.plots.inspect import aggregate_on_histogram

    seen = inspected.seen
    if seen is None:
        raise SettingError(
            "Only what `detector.inspect` gives can be explored: it knows its calibration set."
        )
    n = n or seen.settings.draws(inspected.score_vector.size)
    calibration, aggregate = seen.detector.calibration, seen.settings.aggregate
    cut = epsilon if epsilon is not None else seen.settings.cut(calibration.k)
    (verdict,) = judge(calibration, inspected.score_vector[None], n=n, epsilon=cut, aggregate=aggregate)
    scores = calibration.scores(n, aggregate)
    return verdict, aggregate_on_histogram(scores, verdict.score, verdict.threshold, is_ood=verdict.is_ood)


def waterfall(inspected: "Inspected") -> Any:
    """The summands of the strangest draw."""
    from idecode_core.plots.inspect import score_parts

    terms = inspected.terms[int(np.argmax(inspected.score_vector))]
    return score_parts([str(escape(term.name)) for term in terms], [term.value for term in terms])


def evaluation_parts(evaluation: "Evaluation") -> Parts:
    low, high = evaluation.interval
    words = Markup(
        "<p><b>AUROC {:.1%}</b> [{:.1%}, {:.1%}], TNR at 90% TPR {:.1%}, FPR at 95% TPR {:.1%}</p>"
    ).format(evaluation.auroc.mean, low, high, evaluation.tnr.mean, evaluation.fpr.mean)
    return [words, *([roc_figure(evaluation)] if evaluation.source else [])]


def roc_figure(evaluation: "Evaluation", n: int | None = None, epsilon: float = 0.05) -> Any:
    """The ROC curve with the point where epsilon puts it, as on the Evaluate page."""
    from idecode_core.plots.evaluation import roc_curves
    from idecode_core.quality.methods import evaluate, method_scores
    from idecode_core.quality.side_by_side import curve
    from idecode_core.quality.strength import operating_point

    source = evaluation.source
    if source is None:
        raise SettingError("This evaluation does not know the scores that it is of: make it with `evaluate`.")
    n = n or source.n
    if n != source.n:
        evaluation = evaluate(
            source.calibration, source.id_set, source.ood_set, n, source.aggregate, source.method
        )
    known, strange = (
        method_scores(source.calibration, score_set.score_vectors, n, source.method, source.aggregate)[0]
        for score_set in (source.id_set, source.ood_set)
    )
    drawn = curve(source.ood_set, evaluation, known, strange)
    point = None
    if source.calibration is not None and isinstance(source.aggregate, str) and source.method == "iDECODe":
        point = operating_point(
            source.calibration, source.id_set, source.ood_set, n, epsilon, source.aggregate
        ).on_roc
    return roc_curves([drawn], drawn.label, point, epsilon if point else None)


def guarantee_parts(guarantee: "Guarantee") -> Parts:
    from idecode_core.plots.guarantee import false_detection_rates

    top = max(0.2, min(1.0, 2 * guarantee.epsilon))
    figure = false_detection_rates(
        guarantee.k, np.linspace(top / 10, top, 10).tolist(), epsilon=guarantee.epsilon
    )
    words = Markup("<p>{}</p><p>{}</p>").format(guarantee.statement(), guarantee.one_set())
    return [words, figure]


def session_parts(session: "Session") -> Parts:
    """Its inputs, the strangest first, with verdicts, tags and notes; files that have changed or gone say so."""
    order = np.argsort(session.p_values, kind="stable")[:ROWS].tolist()
    is_ood, rows = session.is_ood, []
    for i in order:
        item = session.inputs[i]
        try:
            decoded = session.decoded(item)
            image = picture(decoded, item.name) if session.detector.modality == "image" else Markup("")
        except IdecodeError as error:
            image = Markup("<i>{}</i>").format(error)
        tags = ", ".join(session.tags.get(item.content_hash, ()))
        note = session.notes.get(item.content_hash, "")
        rows.append((image, item.name, verdict_words(is_ood[i]), f"{session.p_values[i]:.3g}", tags, note))
    lead = Markup("<p><b>{}</b></p>").format(repr(session))
    return [lead + table(("", "file", "verdict", "p-value", "tags", "note"), rows)]
