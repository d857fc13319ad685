"""Results show themselves: a few lines in a terminal, tables and figures in a notebook, and names from files stay text."""

import io

import numpy as np
import pytest
from PIL import Image
from small import random_images, small_scorer

from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.statement import Guarantee
from idecode_core.detector import Detector
from idecode_core.errors import SettingError
from idecode_core.folder.shelf import ScoreSet
from idecode_core.quality.methods import evaluate
from idecode_core.session import Session

HOSTILE = "<img src=x onerror=alert(1)>'); import os #.png"


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector.calibrate("small", small_scorer(), random_images(24, seed=1), n_max=6, seed=4)


@pytest.fixture
def hostile(tmp_path):
    path = tmp_path / HOSTILE
    Image.fromarray(random_images(1)[0]).save(path, "PNG")
    return path


def test_a_detection_is_a_few_lines_in_a_terminal(detector):
    found = detector.detect(random_images(300, seed=3), n=2, epsilon=0.2)
    lines = repr(found).splitlines()
    assert len(lines) == 10
    assert lines[0] == f"{found.is_ood.sum()} of 300 flagged at epsilon = 0.2 (k = 24)"
    assert f"p = {found.p_values.min():.3g}" in lines[1]
    assert "292 less strange" in lines[-1]
    assert len(repr(detector)) < 200


def test_a_detection_in_a_notebook_has_pictures_and_escapes_names(detector, hostile):
    html = detector.detect([hostile], n=2)._repr_html_()
    assert "data:image/png;base64," in html
    assert "<img src=x" not in html
    assert "&lt;img src=x onerror" in html
    assert "<svg" in html


def test_pictures_are_those_of_the_rows(detector):
    pixels = random_images(3, seed=8)
    found = detector.detect(pixels, n=2)
    html = found._repr_html_()
    assert html.count("data:image/png") == 3
    import base64
    import re

    shown = [Image.open(io.BytesIO(base64.b64decode(code))) for code in re.findall(r"base64,([^\"]+)", html)]
    order = np.lexsort((-found.scores, found.p_values))
    assert all(np.array_equal(np.asarray(image), pixels[i]) for image, i in zip(shown, order, strict=True))


def test_an_inspected_file_says_its_verdict_and_shows_variants_and_waterfall(detector, hostile):
    found = detector.inspect(hostile, n=3, epsilon=0.25)
    verdict = detector.detect([hostile], n=3, epsilon=0.25)[0]
    assert found.seen.verdict.p_value == verdict.p_value
    assert found.seen.verdict.is_ood == verdict.is_ood
    html = found._repr_html_()
    assert html.count("data:image/png") == 3
    assert html.count("<iframe") == 2
    assert f"{verdict.p_value:.3g}"[:4] in html
    assert len(repr(found).splitlines()) == 4


def test_a_sample_that_is_inspected_with_more_draws_than_the_calibration_has_no_verdict(detector):
    assert detector.inspect(random_images(1)[0], n=9).seen is None


def sets():
    generator = np.random.default_rng(0)
    return (
        Calibration(generator.random((200, 5))),
        ScoreSet("id", "iD set", False, generator.random((150, 5)).astype(np.float32)),
        ScoreSet("ood", "<b>OOD</b>", True, (generator.random((150, 5)) + 0.4).astype(np.float32)),
    )


def test_an_evaluation_shows_its_roc_and_a_guarantee_its_rates():
    html = evaluate(*sets(), n=3)._repr_html_()
    assert "<iframe" in html
    assert "AUROC" in html
    assert "<b>OOD</b>" not in html
    assert "<iframe" in Guarantee(500, 0.05)._repr_html_()


def test_a_session_shows_its_tags_and_a_file_that_is_gone_as_text(detector, hostile, tmp_path, monkeypatch):
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path / "s"))
    session = Session.from_detection(detector.detect([hostile], n=2), name="one")
    session.tag(session.inputs[0], "<script>alert(1)</script>")
    session.note(session.inputs[0], "<b>note</b>")
    hostile.unlink()
    html = session._repr_html_()
    assert "<script>" not in html
    assert "<b>note</b>" not in html
    assert "can no longer be read" in html


def test_sliders_move_the_verdict_without_the_model(detector, monkeypatch):
    x = random_images(1, seed=6)[0]
    found = detector.inspect(x, n=6, epsilon=0.05)
    box = found.explore()
    count, share, text, figure = box.children
    from idecode_core.verdict import sentence

    assert text.value == sentence(found.seen.verdict, "image").replace(
        "'", "&#39;"
    )  # the epsilon that was asked for, exactly
    expected = detector.detect([x], n=2, epsilon=0.3)[0]
    monkeypatch.setattr(type(detector.scorer), "score", lambda *a, **k: pytest.fail("the model was asked"))
    count.value = 2
    share.value = 0.3
    assert text.value == sentence(expected, "image").replace("'", "&#39;")
    assert len(figure.data) > 1


def test_sliders_of_an_evaluation_read_the_stored_scores():
    calibration, id_set, ood_set = sets()
    box = evaluate(calibration, id_set, ood_set, n=1).explore()
    count, _, text, _ = box.children
    count.value = 5
    assert f"AUROC {evaluate(calibration, id_set, ood_set, n=5).auroc.mean:.1%}" in text.value


def test_without_the_packages_of_the_notebook_one_sentence_names_them(detector, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    with pytest.raises(SettingError, match=r'pip install "idecode-studio\[notebook\]"'):
        detector.inspect(random_images(1)[0], n=2).explore()
