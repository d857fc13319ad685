"""The Inspect page beyond one verdict: batches, two detectors, why in parts, where it is strange, what the power is."""

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from trust_pages import make_checkpoints, zipped

from idecode_core import load_detector
from idecode_core.audio.listening import wav_bytes
from idecode_core.conformal.judge import judge
from idecode_core.folder.stored import open_stored
from idecode_core.image.sets import load_images
from idecode_core.quality.strength import power, power_sentence
from idecode_core.verdict import meaning, sentence
from ui.frame.samples import png
from ui.frame.scores import progress_words
from ui.inspect.batch import summary

ROOT = Path(__file__).parents[2]
DETECTOR = ROOT / "checkpoints" / "fashion-rotations"
PATIENCE = 240  # seconds; the first test of a session imports torch


@pytest.fixture(scope="module")
def detector():
    return load_detector(DETECTOR)


def inspect(page: str = "inspect", **query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=PATIENCE)
    for name, value in {"detector": "fashion-rotations", "b_view": "Table", **query}.items():
        at.query_params[name] = value
    return at.run()


def upload(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader(key="files").set_value(
        [(name, data, "application/octet-stream") for name, data in files]
    )
    return at.run()


def texts(at: AppTest) -> str:
    assert not at.exception
    assert not at.error
    shown = (*at.markdown, *at.caption, *at.info, *at.warning)
    return "\n".join(element.value for element in shown).replace("\\", "")


def picture(index: int, name: str = "fashion-sample") -> np.ndarray:
    return load_images(name).x[index]


def figures(at: AppTest, axis: str) -> list[dict]:
    """The Plotly figures on the page whose x-axis has this title."""
    found = [json.loads(element.proto.spec) for element in at.get("plotly_chart")]
    return [one for one in found if axis in str(one["layout"].get("xaxis", {}).get("title", {}))]


def mixed() -> dict[str, np.ndarray]:
    """Clothes, and digits that do not belong."""
    belonging = {f"clothes/{i}.png": picture(i) for i in range(8)}
    return {**belonging, **{f"digits/{i}.png": picture(i, "digits-sample") for i in range(4)}}


@pytest.fixture(scope="module")
def batch() -> AppTest:
    """A zip of twelve files on the page."""
    files = {name: png(pixels) for name, pixels in mixed().items()}
    return upload(inspect(source="Files"), ("mixed.zip", zipped(files)))


def test_a_zip_becomes_a_table_with_the_strangest_first_and_its_summary(batch: AppTest, detector) -> None:
    shown = texts(batch)
    [table] = batch.dataframe
    found = detector.detect(list(mixed().values()), n=5)
    names = np.array(list(mixed()))[np.argsort(found.p_values, kind="stable")]
    assert list(table.value["p-value"]) == pytest.approx(sorted(found.p_values))
    assert table.value["File"].iloc[0] == names[0]
    assert set(table.value["File"]) == set(mixed())
    assert list(table.value["Rank"]) == sorted(found.ranks)
    assert f"{found.is_ood.sum()} of 12 files flagged" in shown
    assert "chance alone would flag about 0.6 at epsilon = 0.05" in shown
    assert "p = (rank + 1) / (k + 1)" in shown


def test_a_folder_is_taken_as_a_zip_is() -> None:
    at = inspect(source="Files")
    at.button_group(key="bring").set_value("A folder").run()
    files = [(f"mine/{i}.png", png(picture(i)), "image/png") for i in (3, 5)]
    at.file_uploader(key="files_folder").set_value([*files, ("mine/notes.txt", b"no", "text/plain")]).run()
    assert len(at.dataframe[0].value) == 2
    assert "notes.txt" in texts(at)


def test_the_chosen_row_is_the_strangest_until_another_is_chosen_and_the_link_follows(
    batch: AppTest, detector
) -> None:
    scores = detector.detect(list(mixed().values()), n=5).scores
    assert batch.session_state["row"] == int(np.argmax(scores))
    before = batch.query_params["sample"]
    batch.button(key="row_step_1").click().run()
    second = int(np.argsort(-scores)[1])
    assert batch.session_state["row"] == second
    assert list(mixed())[second] in texts(batch)
    assert batch.query_params["sample"] != before


def test_together_the_figure_draws_the_cut_of_the_batch_and_the_words_speak_of_false_discoveries(
    batch: AppTest, detector
) -> None:
    vectors = detector.score_vectors(list(mixed().values()), n=5)
    alone = judge(detector.calibration, vectors, epsilon=0.05)
    together = judge(detector.calibration, vectors, epsilon=0.05, false_discovery_control=True)
    assert alone.threshold != together.threshold
    batch.button_group(key="rule").set_value("together").run()
    [figure] = figures(batch, "F(V), larger is stranger")
    drawn = [trace for trace in figure["data"] if "flagged above" in str(trace.get("text"))]
    assert drawn[0]["x"][0] == pytest.approx(together.threshold)
    row = batch.session_state["row"]
    shown = texts(batch)
    assert meaning(together[row])[0] in shown
    assert "false discoveries" in meaning(together[row])[0]
    batch.button_group(key="rule").set_value("alone").run()
    [figure] = figures(batch, "F(V), larger is stranger")
    drawn = [trace for trace in figure["data"] if "flagged above" in str(trace.get("text"))]
    assert drawn[0]["x"][0] == pytest.approx(alone.threshold)


def test_a_link_that_judges_together_does_so_in_the_table_and_in_the_verdict(detector) -> None:
    files = {name: png(pixels) for name, pixels in mixed().items()}
    at = upload(inspect(source="Files", rule="together", epsilon="0.2"), ("mixed.zip", zipped(files)))
    vectors = detector.score_vectors(list(mixed().values()), n=5)
    together = judge(detector.calibration, vectors, epsilon=0.2, false_discovery_control=True)
    assert sum(at.dataframe[0].value["Verdict"] == "flagged") == together.is_ood.sum()
    shown = texts(at)
    assert "Judged together" in shown
    assert "among 12 files" in shown
    at.selectbox(key="versus").set_value("cifar10-invariance").run()
    assert "Here both judge this file alone" in texts(at)


def test_what_is_flagged_lies_above_the_line_that_is_drawn_and_nothing_else(detector) -> None:
    vectors = detector.score_vectors(list(mixed().values()), n=5)
    for control in (False, True):
        for epsilon in (0.01, 0.05, 0.2):
            found = judge(detector.calibration, vectors, epsilon=epsilon, false_discovery_control=control)
            assert np.array_equal(found.is_ood, found.scores > found.threshold)


def test_a_stopped_batch_shows_what_was_scored_and_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.frame import scores as module

    files = [(f"{i}.png", png(picture(i))) for i in range(20, 44)]
    at = inspect(source="Files")
    real = module.progress_words

    def click(done: int, total: int, seconds: float) -> str:
        """As Streamlit does at a click on Stop: the run ends at once, the callback's word stays."""
        module.st.session_state["batch_stopped"] = names[0]
        module.st.rerun()
        return real(done, total, seconds)

    names: list[str] = []
    monkeypatch.setattr(
        module,
        "score_with_progress",
        lambda *args, run=module.score_with_progress: (names.append(args[-1]), run(*args))[1],
    )
    monkeypatch.setattr(module, "progress_words", click)
    at = upload(at, *files)
    assert f"{module.CHUNK} of 24 files were scored" in texts(at)
    assert len(at.dataframe[0].value) == module.CHUNK
    monkeypatch.setattr(module, "progress_words", real)
    at.button(key="batch_go_on").click().run()
    assert len(at.dataframe[0].value) == 24
    assert "Stopped" not in texts(at)


def test_progress_says_how_long_it_will_take() -> None:
    assert progress_words(50, 200, 10.0) == "50 of 200 files scored, about 30 s left"
    assert progress_words(1, 61, 10.0).endswith("about 10 minutes left")


def test_the_summary_expects_what_an_exact_level_flags(detector) -> None:
    """With k = 5,000 and epsilon = 0.05, 250 of 5,001 levels lie below epsilon."""
    found = judge(detector.calibration, np.zeros((100, 5)), epsilon=0.05)
    assert f"about {100 * 250 / 5001:.3g} at epsilon" in summary(found)


def test_after_an_unexpected_error_the_upload_before_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.frame import uploads

    at = upload(inspect(source="Files"), ("first.png", png(picture(3))))
    assert "first.png" in texts(at)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(uploads, "check_files", fail)
    at = upload(at, ("second.png", png(picture(4))))
    assert not at.exception
    assert not [element for element in at.markdown if element.value.startswith("## :")]
    assert not any("first.png" in element.value for element in (*at.caption, *at.markdown))


@pytest.mark.parametrize("link", [{"draw": "²"}, {"sample": "fashion-sample-²"}, {"draw": "9" * 5000}])
def test_numbers_that_are_none_are_ignored_in_links(link: dict[str, str]) -> None:
    assert "calibration images" in texts(inspect(**link))


def test_power_stands_beside_the_verdict_and_follows_epsilon() -> None:
    stored = open_stored(DETECTOR)
    at = inspect()
    for epsilon in (0.05, 0.001):
        at.select_slider(key="epsilon").set_value(epsilon).run()
        assert power_sentence(power(stored, 5, epsilon), epsilon) in texts(at)


def test_a_weak_detector_is_called_weak_on_inspect_and_home() -> None:
    stored = open_stored(ROOT / "checkpoints" / "esc50-animals")
    expected = power_sentence(power(stored, 5, 0.05), 0.05)
    assert expected.startswith("Weak")
    for page in ("inspect", "home"):
        shown = texts(inspect(page, detector="esc50-animals"))
        assert expected in shown
        assert "calibration sounds" in shown  # home judges sounds too


def test_without_stored_scores_the_power_is_said_to_be_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(make_checkpoints(tmp_path)))
    assert "How much it catches is not known" in texts(inspect(detector="bare"))


def test_two_detectors_judge_one_file_side_by_side() -> None:
    at = inspect(sample="digits-sample-3", versus="cifar10-invariance")
    shown = texts(at)
    for name in ("fashion-rotations", "cifar10-invariance"):
        found = load_detector(ROOT / "checkpoints" / name).detect([picture(3, "digits-sample")], n=5)
        assert sentence(found[0]).partition(": ")[2] in shown
        assert f"**{name}**" in shown
    assert "0.1 in place of 0.05" in shown
    assert len(figures(at, "F(V), larger is stranger")) == 3
    at.button(key="menu_spoken-digits").click().run()  # which no detector of pictures can second
    assert not at.exception
    assert at.selectbox(key="versus").value is None


def test_the_parts_of_a_draw_are_bars_that_add_up_to_the_number_shown(detector) -> None:
    at = inspect(sample="digits-sample-3")
    shown = texts(at)
    vector = detector.score_vectors([picture(3, "digits-sample")], n=5)[0]
    strangest = int(np.argmax(vector))
    assert f"**Draw {strangest + 1}** scores **{vector[strangest]:.3g}**" in shown
    [figure] = figures(at, "Score, larger is stranger")
    [bars] = figure["data"]
    *values, total = bars["x"]
    assert sum(values) == pytest.approx(total) == pytest.approx(vector[strangest], rel=1e-3)
    assert "mean over the 4 variants" in shown


@pytest.mark.parametrize(("index", "words"), [(15, "every single calibration draw."), (7, "99.9% of single")])
def test_a_draw_is_stranger_than_all_others_only_where_it_is(detector, index: int, words: str) -> None:
    strangest = detector.score_vectors([picture(index, "digits-sample")], n=5).max()
    below = (detector.calibration.score_vectors < strangest).mean()
    assert (below == 1) == words.startswith("every")
    assert below > 0.9995  # which is 100.0 % as it would be rounded
    assert f"stranger than {words}" in texts(inspect(sample=f"digits-sample-{index}"))


def test_a_map_is_made_on_demand_and_is_in_the_report(detector, monkeypatch: pytest.MonkeyPatch) -> None:
    from ui.inspect import export

    reports = []
    monkeypatch.setattr(export, "download_row", lambda stem, report, **_: reports.append(report))
    at = inspect(sample="digits-sample-3")
    before = len(at.get("plotly_chart"))
    at.button(key="map_it").click().run()
    score = detector.detect([picture(3, "digits-sample")], n=5).scores[0]
    assert f"The score is {score:.3g}" in texts(at)
    assert len(at.get("plotly_chart")) == before + 1
    report = reports[-1]()
    assert any("where it is strange" in figure.caption for figure in report.figures)
    assert any("it catches about" in text for text in report.sentences)
    at.slider(key="n").set_value(6).run()  # another score: its map is not known
    assert any(button.key == "map_it" for button in at.button)


def test_a_sound_says_which_masks_moved_its_score() -> None:
    samples = np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)
    at = inspect(detector="spoken-digits", sound_source="Files")
    at = upload(at, ("noise.wav", wav_bytes(samples, 16_000)))
    assert "Which masks moved the score?" in texts(at)
    assert any("rises by" in str(one["data"][0].get("colorbar", {})) for one in figures(at, "Seconds"))


def test_the_original_stands_beside_what_the_model_sees() -> None:
    large = np.repeat(np.repeat(picture(2), 9, axis=0), 12, axis=1)  # not square
    at = upload(inspect(source="Files"), ("large.png", png(large)))
    assert "the middle square at 28 x 28 pixels" in texts(at)
