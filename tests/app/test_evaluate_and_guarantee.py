"""Evaluate, Guarantee and Calibrate through Streamlit's AppTest: alone, with and without data, with bad files."""

import io
import json
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from trust_pages import HOME, K, make_checkpoints, no_trouble, png, zipped
from trust_pages import open_page as page

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.conformal.same_source import compare
from idecode_core.conformal.weighted import SHIFT_NOT_PROMISED, SHIFT_PROMISE, under_shift
from idecode_core.folder.detector import load_detector, scorer_hash
from idecode_core.folder.manifest import add_files
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.folder.stored import open_stored
from idecode_core.quality.evaluate import evaluate as evaluate_detector
from idecode_core.quality.methods import method_scores
from idecode_core.quality.side_by_side import side_by_side
from idecode_core.quality.strength import stored_rates_by_group
from idecode_core.report.evaluations import rates
from ui.evaluate.evaluation import BOUNDS, all_rows
from ui.evaluate.source import stored_source
from ui.frame.settings import Chosen
from ui.guarantee.rates import study_of

CSV = "text/csv"


@pytest.fixture(scope="module", autouse=True)
def checkpoints(tmp_path_factory):
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        yield root


def text(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.warning, *app.caption])


def charts(app: AppTest) -> list[str]:
    return [element.proto.id for element in app.get("plotly_chart")]


def test_evaluate_shows_the_numbers_that_the_library_computes(checkpoints):
    app = page("evaluate", n=3)
    no_trouble(app)
    stored = open_stored(checkpoints / "fashion-rotations")
    rows = side_by_side(stored.calibration, stored.id_set, stored.ood_sets, 3)
    expected = {
        (row.label, row.method): f"{100 * row.auroc.mean:.1f} ± {100 * row.auroc.spread:.1f}" for row in rows
    }
    columns = list(app.dataframe[0].value.columns)
    assert [name for name in columns if name.startswith("AUROC:")] == [
        "AUROC: iDECODe",
        "AUROC: 95% interval",
    ]
    app.toggle(key="ev_every").set_value(True).run()  # three near-equal columns on demand
    table = app.dataframe[0].value
    for (label, method), cell in expected.items():
        assert table.loc[table["OOD set"] == label, f"AUROC: {method}"].item() == cell
    printed = {one.ood_set: one for one in evaluate_detector(checkpoints / "fashion-rotations", n=3).rows}
    for label, row in printed.items():  # the bounds that `evaluate` prints
        cells = table.loc[table["OOD set"] == label, list(BOUNDS)]
        shares = (row.auroc_at_least, row.tnr_at_least, row.fpr_at_most)
        assert cells.to_numpy().tolist() == [[f"{100 * share:.1f}" for share in shares]]
    best = next(row for row in rows if row.label == "SVHN" and row.method == "iDECODe")
    exported = [rates(best)[name] for name in ("auroc_at_least", "tnr_at_least", "fpr_at_most")]
    svhn = printed["SVHN"]
    assert exported == [svhn.auroc_at_least, svhn.tnr_at_least, svhn.fpr_at_most]
    assert f"AUROC **{100 * best.auroc.mean:.1f}**" in text(app)
    assert len(app.get("download_button")) == 4


@pytest.mark.parametrize(("view", "count"), [("Separation", 2), ("More transforms", 1), ("Scores", 1)])
def test_evaluate_has_figures_in_each_view(view, count):
    app = page("evaluate", ev_view=view)
    no_trouble(app)
    assert len(charts(app)) == count


def test_with_my_scores_neither_a_detector_nor_n_is_in_the_bar():
    app = page("evaluate", {"ev_source": "My scores"})
    no_trouble(app)
    assert not [one for one in app.slider if one.key == "n"]
    assert "Detector" not in [one.value for one in app.caption]
    files = {"own_id": ["1,2,3", "2,3,4", "2,2,1"], "own_ood": ["8,9,9", "7,8,6", "9,9,8"]}
    for key, lines in files.items():
        app.file_uploader(key=key).set_value(("scores.csv", "\n".join(lines).encode(), "text/csv"))
    app.run()
    no_trouble(app)
    assert app.slider(key="n").max == 3  # draws per point of these scores, whatever a detector has


def test_moving_n_and_the_ood_set_changes_the_sentence_and_not_the_page():
    app = page("evaluate")
    before = text(app)
    app.slider(key="n").set_value(12).run()
    app.selectbox(key="ev_set").set_value("Set A").run()
    no_trouble(app)
    assert "n = 12" in text(app)
    assert "Set A:" in text(app)
    assert text(app) != before


def test_a_link_opens_the_view_that_it_was_made_in():
    app = page("evaluate", {"ev_set": "Set A", "ev_view": "Scores", "n": "7"})
    no_trouble(app)
    assert "Set A:" in text(app)
    assert "n = 7" in text(app)
    assert app.segmented_control(key="ev_view").value == "Scores"
    app = page("guarantee", {"g_k": "75", "g_sure": "99%", "epsilon": "0.1"})
    no_trouble(app)
    assert "nine in ten sets of 75" in text(app)
    assert "To be 99% sure" in text(app)


def test_evaluate_says_what_to_do_when_a_detector_has_no_scores():
    app = page("evaluate", detector="bare")
    no_trouble(app)
    assert "No test scores are stored" in text(app)
    assert "score-sets bare" in text(app)
    assert charts(app) == []


def test_scores_of_other_weights_are_refused_with_a_sentence(checkpoints, tmp_path, monkeypatch):
    root = make_checkpoints(tmp_path)
    folder = root / "fashion-rotations"
    write_scores(folder, open_stored(folder).ood_sets[0], scorer_sha256="0" * 64)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    app = page("evaluate")
    no_trouble(app)
    assert "made with other weights" in text(app).replace("\\", "")


def test_own_scores_are_evaluated_and_a_bad_file_costs_a_sentence():
    app = page("evaluate", ev_source="My scores")
    no_trouble(app)
    assert "Bring iD and OOD scores" in text(app)
    app.file_uploader(key="own_id").set_value(("id.csv", b"a,b\n1,2\n2,3\n3,1\n", CSV))
    app.file_uploader(key="own_ood").set_value(("ood.csv", b"words\n", CSV)).run()
    no_trouble(app)
    assert "ood.csv" in text(app).replace("\\", "")
    assert charts(app) == []
    app.file_uploader(key="own_ood").set_value(("ood.csv", b"9;9\n8;9\n", CSV)).run()
    no_trouble(app)
    assert "AUROC **100.0**" in text(app)
    assert "n = 2" in text(app)
    app.file_uploader(key="own_calibration").set_value(
        ("cal.csv", b"a,b\n" + b"1,1\n2,2\n3,3\n" * 10, CSV)
    ).run()
    no_trouble(app)
    assert "At epsilon = 0.05 it flags **100.0%**" in text(app)
    app.segmented_control(key="ev_view").set_value("Scores").run()
    assert "right of the line is flagged" in text(app)
    app.select_slider(key="epsilon").set_value(0.02).run()
    assert "too few calibration scores to flag anything at epsilon = 0.02" in text(app)
    app.segmented_control(key="ev_source").set_value("Stored test sets").run()
    app.segmented_control(key="ev_source").set_value("My scores").run()
    no_trouble(app)
    assert "AUROC **100.0**" in text(app), "what the visitor brought must stay"


def test_own_files_are_scored_on_a_click_and_bad_ones_are_left_out():
    app = page("evaluate", ev_source="My files")
    assert "Bring files of both kinds" in text(app)
    app.file_uploader(key="evaluate_id_files").set_value(
        [
            ("1.png", png(1), "image/png"),
            ("2.png", png(2), "image/png"),
            ("cut.png", png(3)[:100], "image/png"),
        ]
    )
    archive = zipped({"a.png": png(4), "b/c.png": png(5), "../up.png": png(6), "notes.txt": b"?"})
    app.file_uploader(key="evaluate_ood_files").set_value([("mine.zip", archive, "application/zip")]).run()
    no_trouble(app)
    told = text(app).replace("\\", "")
    assert "cut.png" in told
    assert "leads out of the archive" in told
    assert "notes.txt" in told
    assert charts(app) == []
    next(button for button in app.button if button.label == "Score 4 files").click().run()
    no_trouble(app)
    assert len(charts(app)) == 2
    assert "your OOD files" in text(app)


def test_guarantee_states_the_bound_and_counts_what_was_flagged(checkpoints):
    app = page("guarantee", n=4, epsilon=0.1)
    no_trouble(app)
    assert len(charts(app)) == 3
    told = text(app)
    assert "flagged with probability at most 0.1" in told
    assert f"40/{K + 1}" in told
    stored = open_stored(checkpoints / "fashion-rotations")
    p = judge(stored.calibration, stored.id_set.score_vectors, n=4).p_values
    assert f"**{(p < 0.1).sum()} of 300**" in told
    assert "It does not promise" in told


def test_p_values_of_the_guarantee_page_are_those_of_evaluate_where_scores_tie(tmp_path, monkeypatch):
    """Stored scores are float32; a calibration that is not rounded alike ranks points beside their equals."""
    root = make_checkpoints(tmp_path)
    folder = root / "fashion-rotations"
    shipped = load_detector(folder)
    equals = np.tile(shipped.calibration.score_vectors, 5)  # every test point ties with a calibration point
    write_scores(
        folder, ScoreSet("fashion-test", "Fashion-MNIST", False, equals), scorer_hash(shipped.scorer)
    )
    stored = open_stored(folder)
    settings = Chosen(detector="fashion-rotations", n=4, epsilon=0.1, aggregate="sum", smoothed=False, seed=0)
    on_page = study_of(stored, K, 0.5, settings).p_values
    (evaluated, *_) = method_scores(stored.calibration, stored.id_set.score_vectors, 4)
    np.testing.assert_array_equal(on_page, -evaluated)
    assert (on_page != judge(shipped.calibration, stored.id_set.score_vectors, n=4).p_values).any()
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    app = page("guarantee", n=4, epsilon=0.1)
    no_trouble(app)
    assert f"**{(on_page < 0.1).sum()} of {K}**" in text(app)


def test_the_group_that_one_threshold_treats_worst_comes_first(tmp_path, monkeypatch):
    """Own files of two classes, of which the strange ones are flagged most; each rate computed by hand."""
    root = make_checkpoints(tmp_path)
    folder = root / "fashion-rotations"
    stored = open_stored(folder)
    scores = stored.calibration.scores(4), stored.id_set.score_vectors[:, :4].astype(float).sum(axis=1)
    labels = [np.where(one > np.quantile(scores[0], 0.8), "night", "day") for one in scores]
    rows = [
        f"{i},{label},{part},{part}{i}"
        for part, group in zip(("calibration", "test"), labels, strict=True)
        for i, label in enumerate(group)
    ]
    (folder / "files.csv").write_text("file,label,part,content\n" + "\n".join(rows) + "\n")
    add_files(folder, ["files.csv"])  # else the folder is refused: a file that its list does not name
    night = [one[label == "night"] for one, label in zip(scores, labels, strict=True)]
    pooled = np.mean([(1 + np.sum(scores[0] >= s)) / (len(scores[0]) + 1) < 0.1 for s in night[1]])
    within = np.mean([(1 + np.sum(night[0] >= s)) / (len(night[0]) + 1) < 0.1 for s in night[1]])
    assert pooled > 0.2
    first, last = stored_rates_by_group(stored, 4, 0.1)
    assert (first.group, first.pooled, first.within) == (
        "night",
        pytest.approx(pooled),
        pytest.approx(within),
    )
    assert (last.group, last.pooled) == ("day", 0.0)
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    app = page("guarantee", detector="fashion-rotations", n=4, epsilon=0.1)
    no_trouble(app)
    told, overall = text(app).replace("\\", ""), pooled * len(night[1]) / len(scores[1])
    assert f"**night** is flagged {pooled / overall:.2g} times as often as all inputs together" in told
    table = app.dataframe[-1].value
    assert list(table["Group"]) == ["night", "day", "all groups"]
    assert list(table["Rate, one threshold"]) == [f"{pooled:.1%}", "0.0%", f"{overall:.1%}"]
    assert table["Rate, within the group"][0] == f"{within:.1%}"
    (folder / "files.csv").unlink()
    assert stored_rates_by_group(stored, 4, 0.1) == ()


def test_groups_of_a_table_that_a_visitor_brings_and_a_bad_one_costs_a_sentence():
    app = page("guarantee", epsilon=0.05)
    no_trouble(app)
    assert "Group by group" in text(app)
    assert "hides a group" not in text(app)
    rows = [f"{'cam1' if i % 2 else 'cam2'}/{i}.png,{0.01 if i % 10 == 1 else 0.5},x" for i in range(200)]
    table = "file,p_value,site\n" + "\n".join(rows) + "\n"
    app.file_uploader(key="guarantee_groups").set_value(("p.csv", table.encode(), CSV)).run()
    no_trouble(app)
    shown = app.dataframe[-1].value  # by folder: 20 of the 100 of cam1, none of cam2
    assert list(zip(shown["Group"], shown["Flagged"], shown["Inputs"], strict=True)) == [
        ("cam1", 20, 100),
        ("cam2", 0, 100),
        ("all groups", 20, 200),
    ]
    assert "**cam1** is flagged 2 times as often as all inputs together, 20.0% of 100" in text(app)
    app.selectbox(key="g_groups_column").set_value("site").run()
    no_trouble(app)
    assert list(app.dataframe[-1].value["Group"]) == ["x", "all groups"]
    assert "hides a group" not in text(app)
    app.file_uploader(key="guarantee_groups").set_value(("p.csv", b"a,b\n1,2\n", CSV)).run()
    no_trouble(app)
    assert "has no column" in text(app)
    assert "The guarantee card" in text(app), "the rest of the page stays"


def lines(vectors: np.ndarray) -> bytes:
    return "\n".join(",".join(map(repr, row)) for row in vectors.astype(float).tolist()).encode()


def test_the_switch_says_whether_there_is_a_shift_and_what_the_weights_bring_and_cost(checkpoints):
    app = page("guarantee", n=4, epsilon=0.1)
    assert "effective" not in text(app).lower()
    app.toggle(key="g_shifted").set_value(True).run()
    no_trouble(app)
    assert "unlabelled" in text(app)
    app.segmented_control(key="g_shifted_from").set_value("Scores").run()
    stored = open_stored(checkpoints / "fashion-rotations")
    test, known = stored.id_set.score_vectors, stored.calibration.scores(4)
    strange = test[:, :4].astype(float).sum(axis=1) > np.quantile(known, 0.7)
    vectors = np.concatenate([test[~strange][:100], test[strange]])  # strange ones commoner than they were
    app.file_uploader(key="guarantee_shift").set_value(("new.csv", lines(vectors), CSV)).run()
    no_trouble(app)
    told, metrics = text(app), {one.label: one.value for one in app.metric}
    new, outside = ([one[:, :4].astype(float).sum(axis=1) for one in ones]
                    for ones in ([vectors], [one.score_vectors for one in stored.ood_sets]))  # fmt: skip
    found = under_shift(known, *new, *outside, epsilon=0.1, generator=np.random.default_rng(0))
    (plain, weighted), *others = found.rates
    assert plain.rate > weighted.rate
    assert compare(*new, known).reading() in told
    assert metrics["Effective sample size"] == f"{found.effective:,.0f} of {K}"
    assert metrics["Flagged without weights"] == f"{plain.rate:.1%}"
    assert metrics["Flagged with weights"] == f"{weighted.rate:.1%}"
    [table] = [one.value for one in app.dataframe if "Does not belong" in one.value]
    assert list(table["Caught without weights"]) == [f"{one.rate:.1%}" for one, _ in others]
    assert list(table["Caught with weights"]) == [f"{one.rate:.1%}" for _, one in others]
    assert SHIFT_PROMISE in told
    assert SHIFT_NOT_PROMISED in told


def test_a_batch_that_weights_cannot_be_learned_from_costs_a_sentence(checkpoints):
    app = page("guarantee", {"g_shifted": "true"}, g_shifted_from="Scores")
    for data, sentence in (
        (b"1.5,2.5\n" * 39, "at least 40 inputs, got 39"),
        (b"words\n", "new.csv"),
        (b"900.5,900.5\n" * 200, "too far from the calibration points"),
    ):
        app.file_uploader(key="guarantee_shift").set_value(("new.csv", data, CSV)).run()
        no_trouble(app)
        assert sentence in text(app).replace("\\", "")
        assert "The guarantee card" in text(app), "the rest of the page stays"
    assert "The two differ" in text(app)  # said beforehand, also where weights are refused
    app.segmented_control(key="g_shifted_from").set_value("A stored set").run()
    no_trouble(app)
    assert "better leave the switch off" in text(app)  # of its own test set
    app.segmented_control(key="g_shifted_from").set_value("Files").run()
    app.file_uploader(key="g_shift_files").set_value([("1.png", png(1), "image/png")]).run()
    app.button(key="g_shift_score").click().run()
    no_trouble(app)
    assert "at least 40 inputs, got 1" in text(app)


def test_stored_numbers_need_no_torch(checkpoints):
    code = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "for name in ('evaluate', 'guarantee'):\n"
        "    app = AppTest.from_file(f'pages/{name}.py', default_timeout=180).run()\n"
        "    assert not app.exception and not app.error and app.get('plotly_chart')\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HOME, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_user_s_detector_is_not_held_against_the_paper_because_of_its_name(tmp_path, monkeypatch):
    """CIFAR-10's numbers are for detectors of CIFAR-10, which config.json says."""
    folder = make_checkpoints(tmp_path) / "fashion-rotations"
    folder = folder.rename(tmp_path / "cifar10-anything")
    config = read_settings(folder)
    for dataset, compared in (("cifar10", True), ("", False)):
        source = stored_source(replace(config, name=folder.name, dataset=dataset))
        assert source is not None
        assert any(row.paper_auroc for row in all_rows(source, 5, "sum")) == compared


def test_guarantee_follows_the_calibration_size_and_says_when_nothing_can_be_flagged():
    app = page("guarantee")
    app.select_slider(key="g_k").set_value(75).run()
    no_trouble(app)
    assert "nine in ten sets of 75" in text(app)
    app.select_slider(key="epsilon").set_value(0.01).run()
    no_trouble(app)
    assert "nothing can ever be flagged" in text(app)
    assert {metric.label: metric.value for metric in app.metric}["Fewest k, epsilon = 0.01"] == "100"


def test_guarantee_without_stored_scores_still_shows_the_law():
    app = page("guarantee", detector="bare")
    no_trouble(app)
    assert len(charts(app)) == 2
    assert "No test scores are stored" in text(app)
    assert "Observed here" not in text(app)


def test_how_sure_one_wants_to_be_changes_the_corrected_epsilon():
    app = page("guarantee")

    def corrected() -> float:
        [sentence] = [one.value for one in app.markdown if one.value.startswith("To be ")]
        number = float(sentence.rstrip(".").rpartition(" ")[2])
        assert text(app).count(f"{number:g}") == 1  # each number once
        return number

    at_90 = corrected()
    app.segmented_control(key="g_sure").set_value(0.99).run()
    no_trouble(app)
    assert corrected() < at_90 < 0.05


def test_other_detectors_lie_over_the_figure(checkpoints, tmp_path, monkeypatch):
    root = shutil.copytree(checkpoints, tmp_path / "two")
    shutil.copytree(root / "fashion-rotations", root / "twin")
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(root))
    app = page("guarantee", {"g_beside": "twin"})
    no_trouble(app)
    assert app.multiselect(key="g_beside").options == ["twin"]  # `bare` has no scores
    [figure] = [
        json.loads(one.proto.spec) for one in app.get("plotly_chart") if "the bound" in one.proto.spec
    ]
    traces = {trace.get("name"): trace for trace in figure["data"]}
    assert traces["twin"]["y"] == traces["observed, 95% interval"]["y"]  # the same scores, the same rates


def test_calibrate_says_what_to_bring():
    app = page("calibrate")
    no_trouble(app)
    assert "Drop in a zip or many pictures" in text(app)
    assert charts(app) == []


def test_calibrate_checks_scores_compares_and_saves_a_detector_that_loads(checkpoints, tmp_path):
    # A copy counts: what a source sends often today it sends often tomorrow.
    pictures = {f"{i}.png": png(i) for i in range(11)} | {"copy.png": png(0)}
    app = page("calibrate", {"way": "Calibrate"}, seed=3)  # noise is offered Train
    bad = {
        "up/../../x.png": png(99),
        "broken.png": b"not a picture",
        "bomb.png": bytes(3 * 2**20),
    }
    app.file_uploader(key="calibrate_files").set_value(
        [("mine.zip", zipped(pictures | bad), "application/zip"), ("fake.zip", b"PK?", "application/zip")]
    ).run()
    no_trouble(app)
    told = text(app).replace("\\", "")
    assert "12 pictures ready" in told
    for sentence in (
        "leads out",
        "broken.png: is not an image",
        "zip bombs",
        "fake.zip",
    ):
        assert sentence in told
    assert charts(app) == []
    app.button(key="cal_score").click().run()
    no_trouble(app)
    assert len(charts(app)) == 1
    assert "The two differ" in text(app)  # noise is no clothing

    from idecode_core.detector import Detector
    from ui.calibrate.use import packed_detector

    shipped = load_detector(checkpoints / "fashion-rotations")
    vectors = shipped.score_vectors([np.asarray(_decoded(data)) for data in pictures.values()], n=20, seed=3)
    own = Calibration(vectors, seed=3)
    comparison = compare(own.scores(5), shipped.calibration.scores(5))
    assert f"Mann-Whitney p = {comparison.rank_p_value:.3g}" in text(app)
    data = packed_detector(Detector("mine", shipped.scorer, own, "noise"), "calibrated again on 12 files")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert sorted(archive.namelist()) == [
            f"mine/{name}" for name in ("calibration.npz", "card.md", "config.json", "model.safetensors")
        ]
        archive.extractall(tmp_path)
    loaded = load_detector(tmp_path / "mine")
    assert (loaded.name, loaded.calibration.k, loaded.calibration.seed) == ("mine", 12, 3)
    np.testing.assert_array_equal(loaded.calibration.score_vectors, vectors)
    assert "calibrated again on 12 files" in (tmp_path / "mine" / "card.md").read_text()


def _decoded(data: bytes) -> np.ndarray:
    from idecode_core.image.read import read_image

    return read_image(data)


def test_a_name_that_is_no_folder_is_refused():
    from ui.calibrate.use import is_name

    assert is_name("my-detector_2.0")
    for bad in ("", "../up", "a/b", "a b", ".hidden", "ä", "x" * 61):
        assert not is_name(bad)


def test_one_good_file_is_not_enough_to_calibrate():
    app = page("calibrate")
    app.file_uploader(key="calibrate_files").set_value([("1.png", png(1), "image/png")]).run()
    no_trouble(app)
    assert "1 picture ready" in text(app)
    assert not [button for button in app.button if button.key == "cal_score"]
