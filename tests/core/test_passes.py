"""AUROC against passes: every method is in the figure."""

# ruff: noqa: F811  `methods` is a fixture of another file

from test_cost import methods  # noqa: F401  a fixture

from idecode_core.plots.passes import auroc_against_passes, passes_words
from idecode_core.quality.cost import Costed, front


def test_the_figure_has_every_method_and_names_what_is_below_its_axis(methods: list[Costed]) -> None:
    low = Costed("far below", 3.0, True, dict.fromkeys(methods[0].aurocs, 20.0))
    figure = auroc_against_passes([*methods, low])
    assert (
        sum(len(trace.customdata) for trace in figure.data if trace.customdata is not None)
        == len(methods) + 1
    )
    words = [label.text for label in figure.layout.annotations]
    assert any("below the axis" in text and "far below 20.0" in text for text in words)
    best = front(methods, lambda one: one.passes, lambda one: one.mean)
    assert {one.title for one in best} <= set(words)
    assert all(one.title in passes_words(methods) for one in best)


def test_what_saw_imagenet_has_hollow_marks_of_its_own_and_a_name_in_the_legend(
    methods: list[Costed],
) -> None:
    assert {one.title for one in methods if one.imagenet} == {
        one.title for one in methods if "pretrained" in one.title
    }
    drawn = [trace for trace in auroc_against_passes(methods).data if trace.customdata is not None]
    for hollow in (False, True):
        traces = [trace for trace in drawn if trace.marker.symbol.endswith("-open") == hollow]
        assert {row[0] for trace in traces for row in trace.customdata} == {
            one.title for one in methods if one.imagenet == hollow
        }
        assert all(trace.name.endswith(", after ImageNet") == hollow for trace in traces)
