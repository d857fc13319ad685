"""Simulations of the teaching pages, exported: the notebook runs again what the page showed."""

import json
from pathlib import Path

import numpy as np
import pytest

from idecode_core.report import Export, to_csv, to_html, to_json
from idecode_core.report.arrows import arrows_export
from idecode_core.report.batch import batch_export
from idecode_core.report.breaking import break_it_export
from idecode_core.report.playground import playground_export
from idecode_core.report.stream import stream_export
from idecode_core.simulate import SWITCHES, break_it, changing_stream, mixed_batch
from idecode_core.simulate.arrows import algorithm_1, draw_friends
from idecode_core.simulate.playground import SHAPES, draw_points

REPOSITORY = Path(__file__).parent.parent


def run(export: Export, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Run the notebook's code, its own assertions included; the variables that it leaves."""
    monkeypatch.chdir(REPOSITORY)
    scope: dict[str, object] = {}
    for cell in json.loads(export.notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), scope)
    return scope


def written(export: Export) -> dict[str, object]:
    """All files can be written; the JSON one, read back."""
    assert to_csv(export.report).count("\n") == len(export.report.rows) + 1
    assert export.report.title in to_html(export.report)
    found: dict[str, object] = json.loads(to_json(export.report))
    return found


@pytest.mark.parametrize("switch", SWITCHES)
def test_break_it_notebook_runs_the_same_repeats_again(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"switch": switch, "k": 50, "n": 3, "repeats": 5}
    comparison = break_it(switch, k=50, n=3, repeats=5, generator=np.random.default_rng(3))
    export = break_it_export(comparison, arguments, seed=3, epsilon=0.05)
    scope = run(export, monkeypatch)
    assert np.array_equal(scope["comparison"].broken.p_values, comparison.broken.p_values)  # type: ignore[attr-defined]
    assert written(export)["settings"] == {**arguments, "epsilon": 0.05, "seed": 3}


def test_break_it_notebook_stops_when_another_seed_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = break_it("naive_fisher", k=50, repeats=5, generator=np.random.default_rng(3))
    export = break_it_export(
        comparison, {"switch": "naive_fisher", "k": 50, "repeats": 5}, seed=4, epsilon=0.05
    )
    with pytest.raises(AssertionError):
        run(export, monkeypatch)


@pytest.mark.parametrize("ood_share", [0.0, 0.1])
def test_batch_notebook_judges_the_same_batches_again(
    ood_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"size": 20, "ood_share": ood_share, "epsilon": 0.05, "q": 0.2, "k": 100, "repeats": 10}
    result = mixed_batch(generator=np.random.default_rng(5), **arguments)  # type: ignore[arg-type]
    export = batch_export(result, arguments, seed=5)
    scope = run(export, monkeypatch)
    assert np.array_equal(scope["result"].flagged, result.flagged)  # type: ignore[attr-defined]
    assert [row["rule"] for row in written(export)["rows"]] == [
        "plain threshold",
        "Benjamini-Hochberg",
        "Storey",
    ]  # type: ignore[attr-defined,index]


@pytest.mark.parametrize("change_at", [60, 120])
def test_stream_notebook_watches_the_same_stream_again(
    change_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"length": 120, "change_at": change_at, "strangeness": 2.0, "k": 50}
    stream = changing_stream(generator=np.random.default_rng(6), **arguments)  # type: ignore[arg-type]
    export = stream_export(stream, arguments, seed=6, martingale="simple jumper")
    scope = run(export, monkeypatch)
    assert np.array_equal(scope["run"].p_values, stream.p_values)  # type: ignore[attr-defined]
    rows = written(export)["rows"]
    alarms = [row["point"] - 1 for row in rows if row["alarm of CUSUM"]]  # type: ignore[attr-defined,index]
    assert alarms == stream.watchers["CUSUM"].alarms.tolist()


def test_arrow_notebook_repeats_algorithm_1_and_the_table_adds_up(monkeypatch: pytest.MonkeyPatch) -> None:
    friends = draw_friends(19, generator=np.random.default_rng(9))
    working = algorithm_1(friends, 14.0, 5, generator=np.random.default_rng(100_009))
    export = arrows_export(
        friends, working, lean=14.0, n=5, epsilon=0.1, seed=9, newcomer_seed=100_009, rounds=200
    )
    assert run(export, monkeypatch)["working"].p_value == working.p_value  # type: ignore[attr-defined]
    newcomer, *others = written(export)["rows"]  # type: ignore[misc]
    assert sum(newcomer["error"]) == pytest.approx(newcomer["sum"])
    by_hand = (sum(other["sum"] >= newcomer["sum"] for other in others) + 1) / 20
    assert by_hand == working.p_value


@pytest.mark.parametrize("shape", [*SHAPES, None])
def test_playground_notebook_draws_the_same_points_again(
    shape: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(2)
    training, points = (draw_points(shape or SHAPES[0], 19, generator=generator) for _ in range(2))
    export = playground_export(
        shape, training, points, ncm="Distance from the middle", x=7.0, epsilon=0.1, seed=2
    )
    scope = run(export, monkeypatch)
    assert np.array_equal(scope["calibration_set"], points)  # type: ignore[arg-type]
    assert len(written(export)["rows"]) == 19  # type: ignore[arg-type]


def test_html_shows_the_first_rows_of_a_long_table_and_says_so() -> None:
    arguments = {"length": 300, "change_at": 150}
    export = stream_export(
        changing_stream(generator=np.random.default_rng(1), length=300, change_at=150),
        arguments,
        seed=1,
        martingale="power",
    )
    html = to_html(export.report)
    assert "The first 200 of 300 rows" in html
    assert html.count("<tr>") == 1 + 200 + len(export.report.settings)
