"""The Inspect page: alone, with a bundled picture, with files good and bad."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from idecode_core import load_detector
from idecode_core.data import load_images
from idecode_core.verdict import judge, sentence
from ui.draws_view import montage
from ui.gallery import gallery
from ui.samples import image_sample, png, read_files

ROOT = Path(__file__).parent.parent
DETECTOR = ROOT / "checkpoints" / "fashion-rotations"
PATIENCE = 240  # seconds; the first test of a session imports torch


@pytest.fixture(scope="module")
def detector():
    return load_detector(DETECTOR)


def inspect(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "pages" / "inspect.py"), default_timeout=PATIENCE)
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def verdict_of(at: AppTest) -> str:
    """The sentence without its colours."""
    assert not at.exception
    [text] = [element.value for element in at.markdown if element.value.startswith("### :")]
    return text.split(": ", 1)[1].replace("]", "") if text else ""


def expected_verdict(
    detector, pixels: np.ndarray, *, n: int = 5, epsilon: float = 0.05, seed: int = 0
) -> str:
    """The same through Algorithm 1 itself."""
    detection = detector.detect([pixels], n=n, epsilon=epsilon, seed=seed)
    [verdict] = judge(detector.calibration, detection.score_vectors, n=n, epsilon=epsilon)
    assert verdict.p_value == detection.p_values[0]
    return sentence(verdict)


def picture(index: int = 3, name: str = "digits-sample") -> np.ndarray:
    return load_images(name).x[index]


def upload(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader(key="files").set_value(
        [(name, data, "application/octet-stream") for name, data in files]
    )
    return at.run()


def test_the_page_alone_shows_a_bundled_picture_and_its_verdict() -> None:
    at = inspect()
    assert "calibration images" in verdict_of(at)
    assert at.query_params["sample"]


def test_the_verdict_is_that_of_algorithm_1(detector) -> None:
    at = inspect(sample="digits-sample-3", n="7", epsilon="0.1", seed="4")
    assert verdict_of(at) == expected_verdict(detector, picture(), n=7, epsilon=0.1, seed=4)


def test_settings_are_live_and_never_run_the_model(detector, monkeypatch: pytest.MonkeyPatch) -> None:
    from idecode_core.scoring import ImageScorer

    at = inspect(sample="digits-sample-3")
    before = verdict_of(at)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(ImageScorer, "score", refuse)
    monkeypatch.setattr(ImageScorer, "variants", refuse)
    at.slider(key="n").set_value(20)
    at.select_slider(key="epsilon").set_value(0.001)
    at.run()
    monkeypatch.undo()
    assert verdict_of(at) == expected_verdict(detector, picture(), n=20, epsilon=0.001) != before


def test_aggregate_and_p_value_kind_are_live() -> None:
    at = inspect(sample="digits-sample-3")
    before = at.session_state["aggregate"], at.session_state["p"]
    at.selectbox(key="aggregate").set_value("max")
    at.selectbox(key="p").set_value("smoothed")
    at.run()
    assert "calibration images" in verdict_of(at)
    assert (at.session_state["aggregate"], at.session_state["p"]) == ("max", "smoothed") != before


def test_an_uploaded_file_gives_the_verdict_of_its_pixels(detector) -> None:
    at = upload(inspect(source="Files"), ("mine.png", png(picture(8, "fashion-sample"))))
    assert verdict_of(at) == expected_verdict(detector, picture(8, "fashion-sample"))
    assert at.query_params["sample"].startswith("file-")


def test_files_without_a_sample_ask_for_one() -> None:
    at = inspect(source="Files")
    assert not at.exception
    assert "Choose a picture" in at.info[0].value


def test_a_link_made_with_a_file_asks_for_that_file_and_is_satisfied_by_it() -> None:
    data = png(picture())
    address = image_sample("x.png", data).address
    at = inspect(source="Files", sample=address)
    assert any("a link cannot carry" in element.value for element in at.info)
    at = upload(at, ("x.png", data))
    assert not any("a link cannot carry" in element.value for element in at.info)


def bomb() -> bytes:
    """A PNG that claims to have 30,000 x 30,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 10))
        + chunk(b"IEND", b"")
    )


def animated() -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (32, 32), colour) for colour in ("red", "blue")]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    return file.getvalue()


def in_mode(mode: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, (40, 30)).save(file, kind)
    return file.getvalue()


def bad_files() -> list[tuple[str, bytes, str]]:
    good = png(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    return [
        ("text.png", b"I am not a picture", "not an image"),
        ("cut.png", good[: len(good) // 2], "damaged or cut off"),
        ("empty.png", b"", "empty"),
        ("big.png", b"x" * (20 * 2**20 + 1), "20 MB"),
        ("bomb.png", bomb(), "megapixels"),
        ("moving.gif", animated(), "animated"),
        ("dot.png", png(np.zeros((2, 2, 3), np.uint8)), "at least 8"),
    ]


def test_each_bad_file_costs_one_sentence_and_the_good_ones_go_through(detector) -> None:
    bad = bad_files()
    good = ("good.png", png(picture()))
    at = upload(inspect(source="Files"), *[(name, data) for name, data, _ in bad], good)
    assert verdict_of(at) == expected_verdict(detector, picture())
    [message] = [element.value for element in at.warning]
    lines = [line for line in message.splitlines() if line.startswith("- ")]
    assert len(lines) == len(bad)
    for line, (name, _, reason) in zip(lines, bad, strict=True):
        assert name.split(".")[0] in line
        assert reason in line.replace("\\", "")


def test_a_bad_file_leaves_what_was_there(detector) -> None:
    at = inspect(sample="digits-sample-3")
    at.button_group(key="source").set_value("Files").run()
    at = upload(at, ("text.png", b"I am not a picture"))
    assert verdict_of(at) == expected_verdict(detector, picture())
    assert any("Still showing" in element.value for element in at.caption)


@pytest.mark.parametrize(
    "data",
    [in_mode("RGBA"), in_mode("L"), in_mode("P"), in_mode("1"), in_mode("I;16"), in_mode("CMYK", "TIFF")],
)
def test_unusual_modes_are_read(data: bytes) -> None:
    samples, refused = read_files([("x", data)], image_sample)
    assert len(samples) == 1
    assert not refused


def test_a_hostile_file_name_is_plain_text() -> None:
    at = upload(inspect(source="Files"), ("[x](http://evil.example) <b>.png", b"no"))
    [message] = [element.value for element in at.warning]
    assert "](http" not in message
    assert "<b>" not in message.replace("\\<b\\>", "")


def test_many_files_make_a_table_and_a_row_leads_to_its_detail(detector) -> None:
    strange, usual = picture(), picture(1, "fashion-sample")
    at = upload(inspect(source="Files"), ("a.png", png(strange)), ("b.png", png(usual)))
    [table] = at.dataframe
    assert list(table.value["File"]) == ["a.png", "b.png"]
    expected = detector.detect([strange, usual], n=5).p_values
    assert list(table.value["p-value"]) == pytest.approx(list(expected))
    assert verdict_of(at) == expected_verdict(detector, strange)
    at.session_state["row"] = 1
    at.run()
    assert verdict_of(at) == expected_verdict(detector, usual)


def test_false_discovery_control_is_offered_for_many_files(detector) -> None:
    files = [(f"{i}.png", png(picture(i))) for i in range(4)] + [
        (f"{i + 4}.png", png(picture(i, "fashion-sample"))) for i in range(4)
    ]
    at = upload(inspect(source="Files"), *files)
    at.button_group(key="rule").set_value("together").run()
    vectors = detector.score_vectors(
        [picture(i) for i in range(4)] + [picture(i, "fashion-sample") for i in range(4)], n=5
    )
    expected = judge(detector.calibration, vectors, n=5, epsilon=0.05, false_discovery_control=True)
    assert list(at.dataframe[0].value["Verdict"]) == [verdict.answer for verdict in expected]


def test_redrawing_takes_the_next_seed(detector) -> None:
    at = inspect(sample="digits-sample-3")
    [button] = [button for button in at.button if button.label == "Re-draw the transforms"]
    button.click().run()
    assert at.session_state["seed"] == 1
    assert verdict_of(at) == expected_verdict(detector, picture(), seed=1)


def test_ten_draws_show_how_far_the_p_value_moves(detector) -> None:
    at = inspect(sample="digits-sample-3")
    [button] = [button for button in at.button if button.label == "Draw 10 times"]
    button.click().run()
    p = [detector.detect([picture()], n=5, seed=seed).p_values[0] for seed in range(10)]
    assert any(f"from {min(p):.3g} to {max(p):.3g}" in element.value for element in at.caption)


def test_the_gallery_of_a_detector_has_both_kinds_and_says_which() -> None:
    pictures = gallery({"name": "fashion-rotations"})
    assert {sample.truth for sample in pictures.belonging} == {"in-distribution"}
    assert {sample.truth for sample in pictures.foreign} == {"something else"}
    assert {sample.address.rpartition("-")[0] for sample in pictures.belonging} == {"fashion-sample"}
    assert len(pictures.all) == len(pictures.belonging) + len(pictures.foreign)


def test_an_address_that_does_not_exist_is_ignored() -> None:
    for address in ("digits-sample-99999", "nothing-3", "../../etc-1", "digits-sample--1"):
        assert "calibration images" in verdict_of(inspect(sample=address))


def test_a_draw_with_four_variants_is_one_picture_of_four() -> None:
    tiles = [np.full((2, 2, 3), i, np.uint8) for i in range(4)]
    grid = montage(tiles)
    assert grid.shape == (4, 4, 3)
    assert [int(grid[y, x, 0]) for y, x in ((0, 0), (0, 3), (3, 0), (3, 3))] == [0, 1, 2, 3]
