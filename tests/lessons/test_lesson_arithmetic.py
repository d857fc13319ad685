"""The lesson's JavaScript in a real browser against `idecode_core.conformal`: 10,000 random cases, ties and edges among them."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from idecode_core import conformal
from idecode_core.conformal.multiple import benjamini_hochberg, false_discovery_proportion, storey
from idecode_core.conformal.streams import MARTINGALES, OnlineRanks, cusum_alarms, log_power, ville_alarms
from lessons import breaking, table

PAGE = Path(__file__).parents[2] / "lessons" / "try-it.html"
CASES = 10_000


@pytest.fixture(scope="module")
def module(browser: Browser) -> Iterator[Page]:
    """A page in which `lesson` is the module of try-it.html."""
    source = (
        PAGE.read_text("utf-8").split('<script type="module" id="lesson-module">')[1].split("</script>")[0]
    )
    page = browser.new_page()
    page.evaluate(
        """async (source) => {
          const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          globalThis.lesson = await import(address);
        }""",
        source,
    )
    yield page
    page.close()


def random_cases(seed: int = 0) -> list[tuple[list[float], float, float]]:
    """Calibration scores, a newcomer's score, epsilon: with ties, k from 1 on, and epsilon on the edge of a p-value."""
    generator = np.random.default_rng(seed)
    cases = []
    for _ in range(CASES):
        k = int(generator.integers(1, 60))
        scores = generator.normal(0, 3, k)
        if generator.random() < 0.5:
            scores = np.round(scores)  # many ties
        score = float(generator.choice(scores)) if generator.random() < 0.3 else float(generator.normal(0, 4))
        edge = int(generator.integers(1, k + 1)) / (k + 1)
        epsilon = edge if generator.random() < 0.3 else float(generator.uniform(0.001, 0.999))
        cases.append((scores.tolist(), score, epsilon))
    return cases


def test_ranks_p_values_and_thresholds_are_those_of_the_library_in_ten_thousand_cases(module: Page) -> None:
    cases = random_cases()
    found = module.evaluate(
        """(cases) => cases.map(([calibration, score, epsilon]) => {
          const { rank, p, flagged, threshold } = lesson.judge(calibration, score, epsilon);
          return [rank, p, flagged, threshold === Infinity ? null : threshold, lesson.kNeeded(epsilon)];
        })""",
        cases,
    )
    assert len(found) == CASES
    flags = 0
    for (calibration, score, epsilon), (rank, p, flagged, threshold, needed) in zip(
        cases, found, strict=True
    ):
        assert rank == conformal.ranks(calibration, [score])[0]
        expected = conformal.p_values(calibration, [score])[0]
        assert p == expected  # to the last bit
        assert flagged == (expected < epsilon)
        assert (math.inf if threshold is None else threshold) == conformal.threshold(calibration, epsilon)
        assert needed == conformal.k_needed(epsilon)
        flags += flagged
    assert 0.1 < flags / CASES < 0.9  # both verdicts are among them


def test_the_error_of_the_clock_reader_is_the_shortest_way_to_the_nearest_hour(module: Page) -> None:
    """Computed another way: in whole tenths of a degree, by trying all hours and all laps."""
    generator = np.random.default_rng(1)
    leans, turns = generator.integers(-1800, 1801, 3_000), generator.integers(0, 3600, 3_000)
    edges = [(lean, turn) for lean in (-150, 0, 150) for turn in range(0, 3600, 150)]  # half past
    cases = [*zip(leans.tolist(), turns.tolist(), strict=True), *edges]
    found = module.evaluate(
        "(cases) => cases.map(([lean, turn]) => lesson.baseScore(lean / 10, turn / 10))", cases
    )
    hours = [300 * hour for hour in range(-12, 37)]
    for (lean, turn), error in zip(cases, found, strict=True):
        points_to = lean + turn
        nearest = max(hours, key=lambda hour: (-abs(points_to - hour), hour))  # half past: the later one
        assert round(10 * error) == min(abs(nearest - turn + 3600 * lap) for lap in (-2, -1, 0, 1, 2))
        assert error == round(10 * error) / 10


def test_sums_that_are_equal_on_paper_are_equal_here(module: Page) -> None:
    sums = module.evaluate("[[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.6, 0, 0]].map(lesson.total)")
    assert sums == [0.6, 0.6, 0.6]


def test_draws_have_the_law_that_the_text_says(module: Page) -> None:
    """40,000 draws: mean and spread of the leans and the mean of the turns within 5 standard errors (1 in a million)."""
    count = 40_000
    leans, turns = (
        np.array(module.evaluate(f"(() => {{ const r = lesson.chance(4, {i}); return Array.from({{length: {count}}}, () => lesson.{draw}(r)); }})()"))
        for i, draw in enumerate(("drawLean", "drawTurn"))
    )  # fmt: skip
    assert abs(leans.mean()) < 5 * 8 / math.sqrt(count)
    assert abs(leans.std() - 8) < 5 * 8 / math.sqrt(2 * count)
    assert np.mean(np.abs(leans) < 8) == pytest.approx(0.6827, abs=0.02)  # a bell curve, not only its spread
    assert abs(turns.mean() - 179.95) < 5 * 360 / math.sqrt(12 * count)
    assert (turns.min(), turns.max()) == (0.0, 359.9)
    for numbers in (leans, turns):
        assert np.array_equal(numbers, np.round(numbers, 1))
        steps = np.corrcoef(numbers[:-1], numbers[1:])[0, 1]
        assert abs(steps) < 5 / math.sqrt(count)


def test_the_game_lands_on_every_place_alike_and_flags_at_most_epsilon(module: Page) -> None:
    """20,000 rounds: chi-square with 19 degrees of freedom is above 60 once in 300,000 seeds. Ties, to a tenth of a
    degree, move a little of it to larger p-values, which the promise allows."""
    rounds = 20_000
    p = np.array(
        module.evaluate(f"(() => {{ const r = lesson.chance(3, 5); return Array.from({{length: {rounds}}}, () => lesson.playRound(r)); }})()")
    )  # fmt: skip
    counts = np.bincount(np.rint(20 * p).astype(int), minlength=21)[1:]
    assert ((counts - rounds / 20) ** 2 / (rounds / 20)).sum() < 60
    for epsilon in (0.1, 0.2, 0.5):
        assert np.mean(p < epsilon) <= epsilon + 4 * math.sqrt(epsilon * (1 - epsilon) / rounds)


def test_the_view_puts_the_pieces_together_as_algorithm_1_does(module: Page) -> None:
    """Each number of a view, from the leans and turns that it drew, by the library."""
    for seed, lean, n, epsilon in (
        (9, 14.0, 5, 0.1),
        (4, 20.0, 3, 0.2),
        (0, -60.0, 20, 0.06),
        (7, 0.0, 1, 0.5),
    ):
        view: dict[str, Any] = module.evaluate(
            "(values) => { const { redrawn, ...view } = lesson.lookAt(values); return { ...view, redrawn: redrawn() }; }",
            {"seed": seed, "lean": lean, "n": n, "epsilon": epsilon, "turn": 47},
        )
        friends = view["friends"]
        sums = [round(sum(vector[:n]), 1) for vector in friends["errors"]]
        score = round(sum(view["errors"]), 1)
        assert len(view["errors"]) == n
        assert view["byModel"]["calibration"] == sums
        assert view["byModel"]["score"] == score
        assert view["byModel"]["p"] == conformal.p_values(sums, [score])[0]
        sizes = np.abs(friends["leans"])
        assert view["byEye"]["p"] == conformal.p_values(sizes, [abs(lean)])[0]
        assert view["byEye"]["flagged"] == (view["byEye"]["p"] < epsilon)
        assert [len(p) for p in view["redrawn"]] == [100] * 5


def test_more_draws_let_the_p_value_of_a_stranger_settle(module: Page) -> None:
    spread = module.evaluate("lesson.lookAt({ seed: 9, lean: 25, n: 5, epsilon: 0.1, turn: 0 }).redrawn()")
    assert np.std(spread[-1]) < np.std(spread[0]) / 2


def test_draws_for_a_smaller_n_are_the_first_of_those_for_a_larger_one(module: Page) -> None:
    few, many = (
        module.evaluate("(n) => lesson.lookAt({ seed: 2, lean: 14, n, epsilon: 0.1, turn: 0 }).g", n)
        for n in (5, 20)
    )
    assert few == many[:5]


def test_benjamini_hochberg_storey_and_rates_are_those_of_the_library_in_ten_thousand_cases(
    module: Page,
) -> None:
    """Ties, points on the line, batches of one, all iD and all OOD among them."""
    generator = np.random.default_rng(2)
    cases = []
    for _ in range(CASES):
        k, size, share = (
            int(generator.integers(3, 120)),
            int(generator.integers(1, 40)),
            generator.choice([0, 0.3, 1]),
        )
        calibration, ood = generator.normal(0, 2, k), generator.random(size) < share
        scores = generator.normal(0, 2, size) + 4 * ood
        if generator.random() < 0.5:
            calibration, scores = calibration.round(), scores.round()
        q = int(generator.integers(1, 51)) / 100
        cases.append((np.sort(calibration).tolist(), scores.tolist(), q, ood.tolist()))
    found = module.evaluate(
        """(cases) => cases.map(([sorted, scores, q, ood]) => {
          const places = scores.map((score) => lesson.placeOf(sorted, score));
          return [places, ...[lesson.benjaminiHochberg, lesson.storey].map((rule) => {
            const cut = rule(places, sorted.length, q);
            const flags = places.map((place) => place <= cut);
            return [flags, lesson.rates(flags, ood).map((rate) => (Number.isNaN(rate) ? null : rate))];
          })];
        })""",
        cases,
    )
    flagged = 0
    for (calibration, scores, q, ood), (places, *rules) in zip(cases, found, strict=True):
        k, is_ood = len(calibration), np.array(ood)
        p = conformal.p_values(calibration, scores)
        assert np.array_equal(np.array(places) / (k + 1), p)
        for flags, wanted in zip(rules, (benjamini_hochberg(p, q), storey(p, q, k=k)), strict=True):
            assert flags[0] == wanted.tolist()
            assert flags[1][0] == false_discovery_proportion(wanted, is_ood)
            for rate, some in zip(flags[1][1:], (wanted[~is_ood], wanted[is_ood]), strict=True):
                assert rate == (some.mean() if some.size else None)
        flagged += bool(np.any(rules[0][0]))
    assert 0.1 < flagged / CASES < 0.9


def test_ranks_bets_and_alarms_of_streams_are_those_of_the_library_in_ten_thousand_steps(
    module: Page,
) -> None:
    """200 streams of 50 points, changed in the middle, with ties in half of them: 10,000 steps of every bet."""
    generator = np.random.default_rng(3)
    cases, alarms = [], 0
    for i in range(CASES // 50):
        calibration = generator.normal(size=int(generator.integers(1, 60)))
        scores = generator.normal(size=50) + np.repeat([0, 2], 25)
        if i % 2:
            calibration, scores = calibration.round(1), scores.round(1)
        cases.append((calibration.tolist(), scores.tolist(), (1 - generator.random(50)).tolist()))
    found = module.evaluate(
        """(cases) => cases.map((some) => {
          const ps = lesson.onlinePValues(...some);
          const bets = [...Object.values(lesson.MARTINGALES).map((bet) => [bet, Math.log(20)]), [lesson.cusum(lesson.MARTINGALES.power), Math.log(100)]];
          return [ps, Object.keys(lesson.MARTINGALES), ...bets.map(([bet, limit]) => lesson.watch(ps, bet, limit))];
        })""",
        cases,
    )
    for (calibration, scores, uniforms), (ps, names, *watched) in zip(cases, found, strict=True):
        ranks = OnlineRanks(calibration)
        assert ps == [ranks.p_value(score, u) for score, u in zip(scores, uniforms, strict=True)]
        assert names == list(MARTINGALES)
        wanted = [
            *(ville_alarms(ps, bet, alpha=0.05) for bet in MARTINGALES.values()),
            cusum_alarms(ps, log_power, mean_time=100.0),
        ]
        for one, other in zip(watched, wanted, strict=True):
            assert one["path"] == pytest.approx(other.log_path, abs=1e-9)
            assert one["alarms"] == other.alarms.tolist()
            alarms += other.alarms.size
    assert alarms > 100


def test_many_batches_keep_the_promise_of_each_rule(module: Page) -> None:
    """Over 100 batches, within 4 standard errors: few false among what Benjamini-Hochberg flags, many among the plain flags."""
    view = module.evaluate(
        "lesson.lookAtBatch({ seed: 3, size: 100, ood: 5, strangeness: 4, epsilon: 0.05, q: 0.1, k: 1000 })"
    )
    plain, bh, _ = (np.array(rule) for rule in view["byRule"])  # (rates, batches) each
    assert plain[0].mean() > 0.4
    assert bh[0].mean() <= 0.1 + 4 * bh[0].std() / 10
    assert abs(plain[1].mean() - 0.05) <= 4 * plain[1].std() / 10
    assert view["needed"] == 999


def test_the_toy_model_and_its_score_vectors_are_those_of_the_notebook(module: Page) -> None:
    """50 models and 10,000 score vectors of 20 draws, with draws of their own and with shared ones."""
    generator = np.random.default_rng(4)
    for case in range(50):
        k, shared = int(generator.integers(40, 120)), case % 2
        x, draws = (
            breaking.sample_points(k, generator=generator),
            breaking.sample_draws(1 if shared else 200, 20, generator=generator),
        )
        trained_with = breaking.sample_draws(k, 1, generator=generator)
        points = breaking.sample_points(200, generator=generator)
        w, scores = module.evaluate(
            """([x, t, theta, points, draws]) => {
              const w = lesson.train(x, t, theta);
              const wx = points.map((point) => point.reduce((sum, value, i) => sum + value * w[i], 0));
              const wv = w.reduce((sum, weight) => sum + weight * 2 / Math.sqrt(30), 0);
              return [[...w], [...lesson.scoreVectors(wx, wv, draws)]];
            }""",
            [
                x.ravel().tolist(), trained_with.t.ravel().tolist(), trained_with.theta.ravel().tolist(), points.tolist(),
                {"t": draws.t.ravel().tolist(), "theta": draws.theta.ravel().tolist()},
            ],
        )  # fmt: skip
        gx = trained_with.t * x + trained_with.theta * breaking.DIRECTION
        assert w == pytest.approx(np.linalg.lstsq(gx, trained_with.theta[:, 0], rcond=None)[0], abs=1e-5)
        wanted = breaking.score_vectors(np.array(w), points, draws)
        assert np.reshape(scores, (200, 20)) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("rule", list(breaking.RULES))
def test_each_rule_of_break_it_gives_the_p_values_of_the_library_in_ten_thousand_cases(
    module: Page, rule: str
) -> None:
    generator = np.random.default_rng(5)
    for _ in range(100):
        k, n = int(generator.integers(1, 150)), int(generator.integers(1, 21))
        calibration, test = (generator.normal(size=(points, 20)) ** 2 for points in (k, CASES // 100))
        p = module.evaluate(
            """([rule, calibration, test, n]) => {
              const vectors = rule === "Fisher" ? lesson.surprises(calibration, test) : Float64Array.from(test);
              return [...lesson.ruled(rule, Float64Array.from(calibration), vectors, n)];
            }""",
            [rule, calibration.ravel().tolist(), test.ravel().tolist(), n],
        )
        assert p == pytest.approx(breaking.RULES[rule](calibration[:, :n], test[:, :n]), abs=1e-12)


def test_rates_and_bins_of_p_values_are_counted_exactly_on_the_edges(module: Page) -> None:
    generator = np.random.default_rng(6)
    p = generator.integers(1, 101, (40, 100)) / 100  # all of them on an edge
    run = module.evaluate(
        "(p) => { const { bins, ...run } = lesson.runOf(p); return { ...run, bins: [...bins] }; }", p.tolist()
    )
    rates = np.mean(p[:, :, None] < np.arange(1, 51) / 100, axis=1)  # (repeats, epsilons)
    assert run["mean"] == pytest.approx(rates.mean(axis=0))
    ordered = np.sort(rates, axis=0)
    assert run["low"] == pytest.approx(ordered[2])  # 0.05 of the way through forty
    assert run["high"] == pytest.approx(ordered[37])
    assert run["bins"] == pytest.approx(np.histogram(p, np.arange(21) / 20)[0] / p.size * 20)


@pytest.mark.parametrize("switch", [switch["title"] for switch in table("SWITCHES")])
def test_each_switch_breaks_what_it_says_in_the_browser_as_in_the_notebook(module: Page, switch: str) -> None:
    """Worlds differ, their law does not: rates of 100 detectors in the browser and 200 here within 4 standard errors."""
    [name] = [name for name, entry in breaking.SWITCHES.items() if entry.title == switch]
    comparison = breaking.break_it(name, generator=np.random.default_rng(1))
    view = module.evaluate(
        "(title) => lesson.lookAtBroken({ seed: 1, switch: title, k: 100, n: 5, epsilon: 0.1, predict: 'true' })",
        switch,
    )
    for run, rate, share in zip(
        (comparison.intact, comparison.broken), view["rates"], view["found"], strict=True
    ):
        for here, there in ((run.p_values, rate), (run.ood_p_values, share)):
            by_repeat = np.mean(here < 0.1, axis=1)
            assert abs(by_repeat.mean() - there) < 4 * by_repeat.std() * math.sqrt(1 / 100 + 1 / 200)


def test_scores_on_the_line_are_computed_as_one_would_by_hand(module: Page) -> None:
    """10,000 places, points to two decimals so that scores tie; the expected by sorting all distances."""
    generator = np.random.default_rng(7)
    for case in range(50):
        training = np.sort(generator.uniform(0, 10, int(generator.integers(1, 40))).round(2))
        places = generator.uniform(-2, 12, CASES // 50).round(2 if case % 2 else 6)
        told = module.evaluate(
            "([ncms, training, places]) => ncms.map((ncm) => places.map((x) => lesson.strangeness(ncm, training, x)))",
            [table("NUMBERS")["play"]["ncm"]["choices"], training.tolist(), places.tolist()],
        )
        distances = np.sort(np.abs(places[:, None] - training), axis=1)[:, :5].mean(axis=1).round(2)
        wanted = [places, np.abs(places - np.median(training)).round(2), distances]
        for ours, theirs in zip(told, wanted, strict=True):
            assert (
                np.mean(np.array(ours) == theirs) > 0.99
            )  # a half of a cent may go either way with the last bit
            assert ours == pytest.approx(theirs, abs=0.0101)


def test_only_the_nearest_neighbours_see_the_gap_between_two_bumps(module: Page) -> None:
    values = {"seed": 0, "shape": "Two bumps", "points": "", "k": 200, "epsilon": 0.1, "x": 5}
    flagged = {
        ncm: module.evaluate("(values) => lesson.lookAtLine(values).flagged", {**values, "ncm": ncm})
        for ncm in table("NUMBERS")["play"]["ncm"]["choices"]
    }
    assert flagged == {
        "The value itself": False,
        "Distance from the middle": False,
        "Distance to the nearest neighbours": True,
    }


def test_the_line_says_at_every_place_what_a_newcomer_there_is_told(module: Page) -> None:
    view = module.evaluate(
        "lesson.lookAtLine({ seed: 3, shape: 'My own numbers', points: '1; 2 3,4 50', k: 5, epsilon: 0.1, x: 49, ncm: 'Distance from the middle' })"
    )
    assert (view["calibration"], view["training"], view["low"], view["high"]) == ([1, 3, 50], [2, 4], 0, 50)
    scores = np.abs(np.array(view["calibration"]) - 3)
    assert view["ps"] == conformal.p_values(scores, np.abs(np.array(view["places"]) - 3).round(2)).tolist()
    assert view["p"] == 0.5


@pytest.mark.parametrize(
    "text", ["", "3", "1, two", "1, nan", "1 Infinity", "1, 2e6", " ".join(["1"] * 1001)]
)
def test_typed_points_that_cannot_be_used_are_refused_with_a_sentence(module: Page, text: str) -> None:
    refusal = module.evaluate("(typed) => lesson.readPoints(typed)", text)
    assert isinstance(refusal, str)
    assert refusal.endswith(".")
