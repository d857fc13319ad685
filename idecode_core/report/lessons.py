"""'How it works' as a report and as a notebook: the arrows of the six steps, and the playground on a line."""

import numpy as np

from idecode_core import conformal
from idecode_core.conformal import FloatArray
from idecode_core.plots import teaching
from idecode_core.report.content import Figure, Picture, Report, Value
from idecode_core.report.notebook import Code
from idecode_core.report.simulations import Export
from idecode_core.report.steps import Expression, Seed, Step, steps_notebook
from idecode_core.simulate.arrows import Friends, Working, algorithm_1, draw_friends, shuffled_p_values
from idecode_core.simulate.playground import draw_points, strangeness

SUM_TITLE = "F(V), the sum of n errors in degrees"


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
    """Algorithm 1 on arrows: one row an arrow, so that every sum and the rank can be checked by hand."""
    k = friends.leans.size
    flagged = working.p_value < epsilon
    vectors = friends.calibration.score_vectors[:, :n]
    rows: list[dict[str, Value | Picture]] = [_arrow("newcomer", lean, working.score_vector, working.score)]
    for j in np.argsort(-working.calibration_scores, kind="stable").tolist():
        rows.append(
            _arrow(
                f"friend {j + 1}", float(friends.leans[j]), vectors[j], float(working.calibration_scores[j])
            )
        )
    threshold = conformal.threshold(working.calibration_scores, epsilon)
    line = {"x_title": SUM_TITLE, "flagged": flagged, "threshold": threshold}
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
        Step(
            "figure",
            teaching.rank_line,
            {
                "scores": Expression("working.calibration_scores"),
                "test_score": Expression("working.score"),
                **line,
            },
            show=True,
        ),
        Step(
            "p",
            shuffled_p_values,
            {"k": k, "repeats": rounds, "generator": Seed(seed)},
            text=f"## The promise\n\nDraw {k + 1} arrows from one hat, the last is the newcomer; {rounds:,} times.",
        ),
        Step(
            "bars",
            teaching.p_value_bars,
            {"p_values": Expression("p"), "k": k, "epsilon": epsilon},
            show=True,
        ),
    ]
    game = shuffled_p_values(k, rounds, generator=np.random.default_rng(seed))
    shown = {
        "working.score": working.score,
        "working.p_value": working.p_value,
        f"np.mean(p < {epsilon!r})": float(np.mean(game < epsilon)),
    }
    title = f"An arrow that leans by {lean:g} degrees, among {k} friends"
    introduction = (
        "iD arrows point up, give or take a few degrees. The model M has only seen upright arrows being turned and reads "
        "the turn to the nearest full hour. Its error is the base score; n errors are added up."
    )
    report = Report(
        title,
        (
            f"{'Flagged' if flagged else 'Not flagged'}: {working.rank} of {k} friends were at least this strange, "
            f"p = {working.p_value:.3g} {'<' if flagged else '≥'} epsilon = {epsilon:g}.",
            introduction,
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
                teaching.rank_line(
                    working.calibration_scores,
                    working.score,
                    x_title=SUM_TITLE,
                    flagged=flagged,
                    threshold=threshold,
                ),
                "Count the friends on or beyond the dotted line: they are at least as strange as the newcomer.",
            ),
            Figure(
                teaching.p_value_bars(game, k=k, epsilon=epsilon),
                f"The game, {rounds:,} times: all places come up about equally often.",
            ),
        ),
    )
    return Export(report, steps_notebook(title, introduction, steps, shown))


def _arrow(name: str, lean: float, errors: FloatArray, total: float) -> dict[str, Value | Picture]:
    return {"arrow": name, "lean": lean, "error": tuple(errors.tolist()), "sum": total}


def playground_export(
    shape: str | None,
    proper_training_set: FloatArray,
    calibration_set: FloatArray,
    *,
    ncm: str,
    x: float,
    epsilon: float,
    seed: int,
) -> Export:
    """A newcomer at x on a line; points drawn by the seed, or a visitor's own (`shape` None), which go in as numbers."""
    scores = strangeness(ncm, proper_training_set, calibration_set)
    score = strangeness(ncm, proper_training_set, [x])
    p = float(conformal.p_values(scores, score)[0])
    rank, k, flagged = int(conformal.ranks(scores, score)[0]), scores.size, p < epsilon
    points = "calibration_set"
    if shape is None:
        drawn: list[Step | Code] = [
            Code(f"calibration_set = np.array({calibration_set.tolist()})"),
            Code(f"proper_training_set = np.array({proper_training_set.tolist()})"),
        ]
    else:
        arguments = {"shape": shape, "count": k, "generator": Expression("generator")}
        drawn = [
            Code(f"generator = np.random.default_rng({seed})"),
            Step("proper_training_set", draw_points, arguments),
            Step(points, draw_points, arguments),
        ]
    training = Expression("proper_training_set")
    steps = [
        *drawn,
        Step(
            "scores", strangeness, {"ncm": ncm, "proper_training_set": training, "points": Expression(points)}
        ),
        Step("score", strangeness, {"ncm": ncm, "proper_training_set": training, "points": [x]}),
        Step(
            "p",
            conformal.p_values,
            {"calibration_scores": Expression("scores"), "test_scores": Expression("score")},
        ),
        Step(
            "figure",
            teaching.staircase,
            {
                "scores": Expression("scores"),
                "test_score": Expression("float(score[0])"),
                "x_title": ncm.lower(),
                "epsilon": epsilon,
            },
            show=True,
        ),
    ]
    title = f"A newcomer at {x:g}, among {k} points on a line"
    sentence = (
        f"{'Flagged' if flagged else 'Not flagged'}: {rank:,} of {k:,} points are at least as strange, "
        f"p = {rank + 1:,}/{k + 1:,} = {p:.3g} {'<' if flagged else '≥'} epsilon = {epsilon:g}."
    )
    line = np.linspace(
        min(0.0, float(calibration_set.min())), max(10.0, float(calibration_set.max())), 1001
    ).round(4)
    p_line = conformal.p_values(scores, strangeness(ncm, proper_training_set, line))
    rows: list[dict[str, Value | Picture]] = [
        {"calibration_point": float(point), "strangeness": float(value)}
        for point, value in zip(calibration_set, scores, strict=True)
    ]
    report = Report(
        title,
        (sentence, "Any score keeps the promise on false alarms. A good one also finds strangers."),
        {"points": shape or "own numbers", "ncm": ncm, "x": x, "epsilon": epsilon, "seed": seed},
        tuple(rows),
        (
            Figure(
                teaching.playground(calibration_set, x, line, p_line, epsilon=epsilon),
                "The p-value that a newcomer would have at each place; in the orange zones it is flagged.",
            ),
        ),
    )
    return Export(report, steps_notebook(title, sentence, steps, {"p": [p]}))
