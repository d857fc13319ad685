"""The six steps of 'How it works' as a report and as a notebook: Algorithm 1 on arrows, every number by hand."""

import numpy as np

from idecode_core.conformal import FloatArray
from idecode_core.conformal.judge import judge
from idecode_core.plots.ranks import p_value_bars, rank_line
from idecode_core.report.content import Export, Figure, Report, Row
from idecode_core.report.notebook import Code
from idecode_core.report.steps import Expression, Seed, Step, seen, steps_notebook, take
from idecode_core.simulate.arrows import Friends, Working, algorithm_1, draw_friends, shuffled_p_values, total
from idecode_core.verdict import comparison

SUM_TITLE = "F(V), the sum of n errors in degrees"
INTRODUCTION = (
    "iD arrows point up, give or take a few degrees. The model M has only seen upright arrows being turned and reads "
    "the turn to the nearest full hour. Its error is the base score; n errors are added up."
)


def arrows_export(
    friends: Friends,
    working: Working,
    *,
    lean: float,
    n: int,
    epsilon: float,
    seed: int,
    newcomer_seed: int,
    rounds: int,
) -> Export:
    """Algorithm 1 on arrows: one row per arrow, so that every sum and the rank can be checked by hand."""
    k = friends.leans.size
    (verdict,) = judge(friends.calibration, [working.score_vector], epsilon=epsilon, aggregate=total)
    vectors, sums = friends.calibration.score_vectors[:, :n], working.calibration_scores
    rows = [_arrow("newcomer", lean, working.score_vector, working.score)]
    for j in np.argsort(-sums, kind="stable").tolist():
        rows.append(_arrow(f"friend {j + 1}", float(friends.leans[j]), vectors[j], float(sums[j])))
    line = Step(
        "figure",
        rank_line,
        {
            "scores": Expression("working.calibration_scores"),
            "test_score": Expression("working.score"),
            "x_title": SUM_TITLE,
            "flagged": verdict.is_ood,
            "threshold": verdict.threshold,
        },
        show=True,
    )
    game = Step(
        "p",
        shuffled_p_values,
        {"k": k, "repeats": rounds, "generator": Seed(seed)},
        text=f"## The promise\n\nDraw {k + 1} arrows from one hat, the last is the newcomer; {rounds:,} times.",
    )
    bars = Step("bars", p_value_bars, {"p_values": Expression("p"), "k": k, "epsilon": epsilon}, show=True)
    steps: list[Step | Code] = [
        Step("friends", draw_friends, {"k": k, "generator": Seed(seed)}, text="## The calibration set"),
        Step(
            "working",
            algorithm_1,
            {"friends": Expression("friends"), "lean": lean, "n": n, "generator": Seed(newcomer_seed)},
            text="## Algorithm 1 for the newcomer",
        ),
        Code(
            'print("V(x) =", working.score_vector, "F(V(x)) =", working.score, "rank", working.rank, "p =", working.p_value)'
        ),
        line,
        game,
        bars,
    ]
    results = {"friends": friends, "working": working, "p": take(game, {})}
    report = Report(
        f"An arrow that leans by {lean:g} degrees, among {k} friends",
        (
            f"{verdict.answer.capitalize()}: {verdict.rank} of {k} friends were at least this strange, "
            f"{comparison(verdict.p_value, epsilon)}.",
            INTRODUCTION,
        ),
        {
            "lean": lean,
            "n": n,
            "k": k,
            "epsilon": epsilon,
            "seed": seed,
            "seed_of_the_newcomer": newcomer_seed,
        },
        tuple(rows),
        (
            Figure(
                take(line, results),
                "Count the friends on or beyond the dotted line: they are at least as strange as the newcomer.",
            ),
            Figure(
                take(bars, results), f"The game, {rounds:,} times: all places come up about equally often."
            ),
        ),
    )
    shown = seen(["working.score", "working.p_value", f"np.mean(p < {epsilon!r})"], results)
    return Export(report, steps_notebook(report.title, INTRODUCTION, steps, shown))


def _arrow(name: str, lean: float, errors: FloatArray, total: float) -> Row:
    return {"arrow": name, "lean": lean, "error": tuple(errors.tolist()), "sum": total}
