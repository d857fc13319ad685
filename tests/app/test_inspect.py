"""The Inspect page: alone, with a bundled picture, with files good and bad."""

import io
import struct
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from idecode_core import load_detector
from idecode_core.audio.listening import wav_bytes
from idecode_core.conformal.judge import judge
from idecode_core.folder.settings import read_settings
from idecode_core.image.sets import load_images
from idecode_core.verdict import sentence
from ui.frame.pictures import PICTURES
from ui.frame.samples import decoded_sample, png
from ui.frame.sounds import SOUNDS
from ui.inspect.draws import side_by_side

ROOT = Path(__file__).parents[2]
DETECTOR = ROOT / "checkpoints" / "fashion-rotations"
DIGITS = ROOT / "checkpoints" / "spoken-digits"
PATIENCE = 240  # seconds; the first test of a session imports torch


@pytest.fixture(scope="module")
def detector():
    return load_detector(DETECTOR)


def inspect(**query: str) -> AppTest:
    at = AppTest.from_file(str(ROOT / "pages" / "inspect.py"), default_timeout=PATIENCE)
    for name, value in {"detector": "fashion-rotations", "b_view": "Table", **query}.items():
        at.query_params[name] = value
    return at.run()


def verdict_of(at: AppTest) -> str:
    """The sentence without its colours."""
    assert not at.exception
    [text] = [element.value for element in at.markdown if element.value.startswith("## :")]
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
    from idecode_core.image.scorer import ImageScorer

    at = inspect(sample="digits-sample-3")
    before = verdict_of(at)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the model ran")

    monkeypatch.setattr(ImageScorer, "score", refuse)
    monkeypatch.setattr(ImageScorer, "inspect", refuse)
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
    address = decoded_sample(PICTURES, "x.png", data, PICTURES.read(data, "x.png")).address
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


def test_only_unreadable_files_clear_the_verdict_of_what_was_there_before() -> None:
    at = inspect(sample="digits-sample-3")
    at.button_group(key="source").set_value("Files").run()
    assert any("Still showing" in element.value for element in at.caption)
    at = upload(at, ("text.png", b"I am not a picture"))
    assert not at.exception
    assert not [element for element in at.markdown if element.value.startswith("## :")]
    assert any("nothing to judge" in element.value for element in at.info)
    assert "sample" not in at.query_params
    at = upload(at, ("good.png", png(picture())))
    assert "calibration images" in verdict_of(at)


@pytest.mark.parametrize(
    "data",
    [in_mode("RGBA"), in_mode("L"), in_mode("P"), in_mode("1"), in_mode("I;16"), in_mode("CMYK", "TIFF")],
)
def test_unusual_modes_are_read(data: bytes) -> None:
    assert PICTURES.read(data, "x").shape == (30, 40, 3)


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


def test_a_name_that_a_spreadsheet_would_run_is_a_text_in_the_table_that_can_be_taken_home() -> None:
    at = upload(inspect(source="Files"), ("=1+1.png", png(picture())), ("b.png", png(picture(1))))
    assert set(at.dataframe[0].value["File"]) == {"'=1+1.png", "b.png"}


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


def test_a_late_answer_of_the_gallery_is_no_choice_and_a_click_on_another_draw_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ui.inspect import draws

    state = {"gallery": 6, "draw": None}
    drawn: list[str] = []
    monkeypatch.setattr(draws.st, "session_state", state)
    monkeypatch.setattr(draws, "rerun_on", drawn.append)
    draws.choose_another("gallery", 6)
    assert (state["draw"], drawn) == (None, [])
    state["gallery"] = 2
    draws.choose_another("gallery", 6)
    assert (state["draw"], drawn) == (2, ["draw"])


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


def truths(modality, config, addresses) -> set[str]:
    return {modality.find(config, address).truth for address in addresses}


def test_the_gallery_of_a_detector_has_both_kinds_and_says_which() -> None:
    config = read_settings(DETECTOR)
    pictures = PICTURES.gallery(config)
    assert truths(PICTURES, config, pictures.belonging) == {"in-distribution"}
    assert truths(PICTURES, config, pictures.foreign) == {"something else"}
    assert {address.rpartition("-")[0] for address in pictures.belonging} == {"fashion-sample"}
    assert pictures.first in pictures.foreign


def test_what_belongs_is_stored_and_never_guessed_from_a_name() -> None:
    config = replace(read_settings(DETECTOR), name="cifar10-anything", dataset="")
    pictures = PICTURES.gallery(config)
    assert not pictures.belonging
    assert truths(PICTURES, config, [*pictures.foreign, "cifar10-sample-0"]) == {""}
    assert PICTURES.gallery(replace(config, dataset="cifar10")).belonging
    digits = replace(read_settings(DIGITS), name="anything")
    assert truths(SOUNDS, digits, SOUNDS.gallery(digits).belonging) == {"in-distribution"}
    unknown = replace(digits, name="spoken-digits", dataset="")
    assert not SOUNDS.gallery(unknown).belonging
    assert truths(SOUNDS, unknown, SOUNDS.gallery(unknown).foreign) == {""}


def counted(monkeypatch: pytest.MonkeyPatch, *functions: tuple[object, str]) -> Counter[str]:
    """How often functions are called from now on."""
    calls: Counter[str] = Counter()

    def count(name: str, function):
        def counting(*args, **kwargs):
            calls[name] += 1
            return function(*args, **kwargs)

        return counting

    for owner, name in functions:
        monkeypatch.setattr(owner, name, count(name, getattr(owner, name)))
    return calls


def test_a_new_picture_is_decoded_once_and_goes_through_the_network_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from idecode_core.image import read
    from idecode_core.models import Equivariant

    at = inspect(source="Files")
    calls = counted(monkeypatch, (read, "_from_pil"), (Equivariant, "encode"))
    at = upload(at, ("mine.png", png(picture(11, "fashion-sample"))))
    assert "calibration images" in verdict_of(at)
    assert calls == {"_from_pil": 1, "encode": 1}
    at.slider(key="n").set_value(9)
    at.run()
    assert calls == {"_from_pil": 1, "encode": 1}


def test_many_files_are_scored_in_one_go_and_only_the_chosen_row_is_looked_at_closer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from idecode_core.image.scorer import ImageScorer

    at = inspect(source="Files")
    calls = counted(monkeypatch, (ImageScorer, "score"), (ImageScorer, "inspect"))
    at = upload(at, *[(f"{i}.png", png(picture(i, "fashion-sample"))) for i in range(12, 17)])
    assert len(at.dataframe[0].value) == 5
    assert calls == {"score": 1, "inspect": 1}


def noise() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, 16_000).astype(np.float32)


def test_the_same_samples_at_another_rate_are_another_sound() -> None:
    files = [(f"{rate}.wav", wav_bytes(noise(), rate)) for rate in (8_000, 32_000)]
    at = upload(inspect(detector="spoken-digits", sound_source="Files"), *files)
    assert not at.exception
    shown = list(at.dataframe[0].value["Score"])
    expected = load_detector(DIGITS).detect([data for _, data in files], n=5).scores
    assert shown == pytest.approx(list(expected), rel=1e-4)
    assert shown[0] != pytest.approx(shown[1], rel=1e-2)
    at = AppTest.from_file(str(ROOT / "pages" / "calibrate.py"), default_timeout=PATIENCE)
    at.query_params["detector"] = "spoken-digits"
    at.run().file_uploader(key="calibrate_files").set_value(
        [(name, data, "audio/wav") for name, data in files]
    )
    at.run()
    assert any("2 sounds ready" in element.value for element in at.markdown)


def test_a_bundled_sound_is_judged_heard_and_looked_at_closer() -> None:
    at = inspect(detector="spoken-digits")
    assert "calibration sounds" in verdict_of(at)
    assert at.query_params["sample"].startswith("sound-")
    assert any("What the model hears" in element.value for element in at.markdown)
    assert len(at.get("audio")) == 2  # the sound, and its chosen variant


def test_a_recording_is_judged_and_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from idecode_core.audio import read

    at = inspect(detector="spoken-digits", sound_source="Microphone")
    assert any("Record a few seconds" in element.value for element in at.caption)
    calls = counted(monkeypatch, (read, "_decode"))
    at.audio_input(key="recording").set_value(("x.wav", wav_bytes(noise(), 16_000), "audio/wav")).run()
    assert "calibration sounds" in verdict_of(at)
    at.slider(key="n").set_value(9).run()
    assert "calibration sounds" in verdict_of(at)
    assert calls["_decode"] == 2  # when it arrived, and for the player


def test_an_address_that_does_not_exist_is_not_followed_and_the_page_says_so() -> None:
    for address in ("digits-sample-99999", "nothing-3", "../../etc-1", "digits-sample--1"):
        at = inspect(sample=address, versus="no-such-one", draw="99")
        assert "calibration images" in verdict_of(at)
        [notice] = [element.value.replace("\\", "") for element in at.warning]
        assert f"The link asks for the sample = {address}, which is not among those" in notice
        assert f"shown is **{at.session_state['sample']}**" in notice
        assert "a second opinion by = no-such-one" in notice
        assert "draw = 99" in notice


def test_a_draw_with_several_variants_is_a_strip_without_empty_cells() -> None:
    tiles = [np.full((2, 2, 3), 40 * i, np.uint8) for i in range(3)]
    tiles.append(np.full((4, 4, 3), 200, np.uint8))  # of a member with another size
    strip = side_by_side(tiles)
    assert strip.shape == (4, 4 * 4 + 3 * 2, 4)
    opaque = strip[0, strip[0, :, 3] == 255, 0]
    assert opaque.tolist() == [0] * 4 + [40] * 4 + [80] * 4 + [200] * 4
    assert np.array_equal(side_by_side(tiles[:1]), tiles[0])


def test_a_member_that_names_nothing_is_not_said_to_say_something() -> None:
    captions = [caption.value for caption in inspect(detector="cifar10-turn-distance").caption]
    turned, as_it_is = (text for text in captions if "**Applied**" in text)
    assert "**Model says** turned by about" in turned
    assert "Model says" not in as_it_is


def test_all_files_that_were_left_out_are_counted_though_only_a_dozen_are_named() -> None:
    def page() -> None:
        from ui.frame.messages import refused

        refused([f"file-{i}.png: not a picture" for i in range(30)])

    (warning,) = AppTest.from_function(page).run().warning
    assert warning.value.startswith("30 files were left out:")
    assert warning.value.count("not a picture") == 12
    assert "and 18 more" in warning.value
