"""The Attack lab, on a small untrained classifier: what it says is what victim, attack and detector give."""

import base64
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small import SIZE, random_images, small_scorer
from streamlit.testing.v1 import AppTest

from idecode_core import Detector, load_detector
from idecode_core.attacks import Attacked, attack, load_victim
from idecode_core.files.names import IMAGE_BYTES
from idecode_core.folder.detector import save_detector, scorer_hash
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.image.features import Preprocessing
from idecode_core.image.read import Unrounded
from idecode_core.image.scorer import ImageScorer
from idecode_core.image.sets import class_names, load_images
from idecode_core.report import Notebook, Report
from idecode_core.report.attack import CHOSEN
from idecode_core.transforms import SmallAffine
from paper.attack_sets import place
from ui.attack import outcome as outcome_module
from ui.attack import run as run_module
from ui.frame.samples import png

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "pages" / "attack_lab.py"
PATIENCE = 240  # seconds; the first test of a session imports torch and foolbox
CLASSES = class_names("cifar10")
PICTURE = 12  # of cifar10-sample; the second of the gallery


@pytest.fixture(scope="module", autouse=True)
def checkpoints(tmp_path_factory: pytest.TempPathFactory):
    """`cifar10-invariance` can be attacked, `steps` gives no gradients, `fashion-rotations` knows other pictures,
    `spoken-digits` listens."""
    root = tmp_path_factory.mktemp("checkpoints")
    belong = random_images(40)
    for name, base_ncm, dataset, classes in (
        ("cifar10-invariance", "label_cross_entropy", "", CLASSES),
        ("steps", "argmax_disagreement", "", ()),
        ("fashion-rotations", "label_cross_entropy", "fashion", ()),
    ):
        scorer = replace(
            undecided(small_scorer(SmallAffine(), base_ncm, outputs=10, seed=3)), classes=classes
        )
        detector = Detector.calibrate(name, scorer, belong, n_max=6, summary="noise", dataset=dataset)
        save_detector(detector, root / name)
    (root / "spoken-digits").mkdir()
    for file in ("config.json", "model.safetensors", "calibration.npz"):
        shutil.copy(ROOT / "checkpoints" / "spoken-digits" / file, root / "spoken-digits" / file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        yield root


def undecided(scorer: ImageScorer) -> ImageScorer:
    """Bring a network that names one class whatever it sees to answers that hang on the picture: it can be fooled."""
    noise = torch.from_numpy(random_images(40)).permute(0, 3, 1, 2).float() / 255
    model: Any = scorer.model
    with torch.no_grad():
        model.train()
        for _ in range(30):  # its batch normalisation learns
            model.encode(noise)
        model.eval()
        model.head.weight.mul_(8)
        model.head.bias.copy_(-(model.encode(noise) @ model.head.weight.T).mean(0))
    return scorer


def lab(**query: str) -> AppTest:
    at = AppTest.from_file(str(PAGE), default_timeout=PATIENCE)
    for name, value in {"picture": f"cifar10-sample-{PICTURE}", "fgsm_strength": "0.4", **query}.items():
        at.query_params[name] = value
    return at.run()


def texts(at: AppTest) -> str:
    assert not at.exception
    shown = (*at.markdown, *at.caption, *at.info, *at.warning, *at.error)
    return "\n".join(element.value for element in shown).replace("\\", "")


def keys(at: AppTest) -> set[str]:
    return {button.key for button in at.button}


def expected(strength: float, name: str = "fgsm") -> Attacked:
    """The attack as a reader of the library would run it."""
    victim = load_victim("cifar10-invariance")
    pixels = Preprocessing(SIZE)(load_images("cifar10-sample").x[PICTURE])
    x = torch.from_numpy(pixels.copy()).permute(2, 0, 1)[None].float() / 255
    return attack(victim, x, [int(victim.all_logits(x).argmax())], name, strength)


@pytest.fixture(scope="module")
def page() -> AppTest:
    """FGSM, judged by the detector of the same network."""
    return lab(detector="cifar10-invariance", n="4", epsilon="0.3")


def test_a_right_picture_becomes_a_wrong_one_and_both_p_values_are_the_detector_s_own(page: AppTest) -> None:
    attacked, shown = expected(0.4), texts(page)
    assert attacked.success.all()
    detector = load_detector("cifar10-invariance")
    for floats, logits in ((attacked.clean, attacked.before), (attacked.attacked, attacked.after)):
        found = detector.detect(Unrounded(floats), n=4, epsilon=0.3)
        said = CLASSES[int(logits.argmax())]
        assert f"{said} (" in shown
        assert f"p = {found.p_values[0]:.3g}**, :" in shown
    assert "Fooled and" in shown
    assert f"length (L2) {attacked.l2[0]:.3g}" in shown
    assert CHOSEN in shown
    assert page.query_params["picture"] == f"cifar10-sample-{PICTURE}"


def test_the_attacked_floats_are_judged_and_not_their_8_bit_copies(page: AppTest) -> None:
    attacked = expected(0.4).attacked
    rounded = (attacked * 255).round() / 255
    detector = load_detector("cifar10-invariance")
    floats, eight_bits = (detector.score_vectors(Unrounded(x), n=4)[0] for x in (attacked, rounded))
    assert not np.allclose(floats, eight_bits)
    figure = next(f for f in figures(page) if "Draw" in str(f["layout"]["xaxis"]["title"]))
    drawn = next(values(trace["y"]) for trace in figure["data"] if trace.get("name") == "attacked")
    np.testing.assert_allclose(drawn, floats, rtol=1e-4)


def figures(at: AppTest) -> list[dict]:
    return [json.loads(element.proto.spec) for element in at.get("plotly_chart")]


def values(packed: dict[str, str]) -> np.ndarray:
    """Numbers as Plotly sends them to the browser."""
    return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])


def test_moving_epsilon_or_n_judges_again_and_runs_no_network(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Detector, "inspect", refuse)
    page.select_slider(key="epsilon").set_value(0.001).run()
    assert ":blue[not flagged]" in texts(page)
    assert ":orange[flagged]" not in texts(page)
    page.slider(key="n").set_value(2).run()
    found = load_detector("cifar10-invariance").detect(expected(0.4).samples, n=2, epsilon=0.3)
    assert f"p = {found.p_values[0]:.3g}**, :" in texts(page)
    page.slider(key="n").set_value(4).run()
    page.select_slider(key="epsilon").set_value(0.3).run()


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("the network must not run here")


def test_the_curve_comes_on_demand_and_holds_the_p_values_of_each_strength(page: AppTest) -> None:
    assert len(figures(page)) == 2
    page.button(key="curve_go").click().run()
    figure = figures(page)[-1]
    (trace,) = figure["data"]
    strengths = [float(text) for text in trace["x"]]
    assert strengths == [0, 0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4]
    detector = load_detector("cifar10-invariance")
    clean = detector.detect(Unrounded(expected(0.4).clean), n=4, epsilon=0.3).p_values[0]
    last = detector.detect(expected(0.4).samples, n=4, epsilon=0.3).p_values[0]
    assert values(trace["y"])[[0, -1]] == pytest.approx([clean, last])
    fooled = [False, *(bool(expected(strength).success[0]) for strength in strengths[1:])]
    assert [symbol == "circle" for symbol in trace["marker"]["symbol"]] == fooled
    assert "FGSM, as a share of the pixel range" in figure["layout"]["xaxis"]["title"]["text"]


def test_a_slow_attack_asks_first_runs_once_and_is_then_there_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = lab(detector="cifar10-invariance", attack="deepfool")
    assert "Can DeepFool change its mind?" in texts(at)
    at.button(key="attack_go").click().run()
    attacked = expected(0.18, "deepfool")
    assert f"length (L2) {attacked.l2[0]:.3g}" in texts(at)
    monkeypatch.setattr(
        run_module.AttackJob, "run", lambda job, *_: refuse() if job.strength else untouched(job)
    )
    at.run()
    at.button_group(key="attack").set_value("cw").run()
    at.button_group(key="attack").set_value("deepfool").run()
    assert f"length (L2) {attacked.l2[0]:.3g}" in texts(at)


untouched = run_module.AttackJob.run


def test_what_is_stopped_keeps_what_is_done_and_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    at = lab(detector="cifar10-invariance")
    real = run_module.progress_words

    def click(job: run_module.AttackJob, share: float, seconds: float) -> str:
        """As Streamlit does at a click on Stop in the middle: the callback is called, and the run ends at once."""
        if share >= 0.5:
            run_module.want()
            run_module.st.rerun()
        return real(job, share, seconds)

    monkeypatch.setattr(run_module, "progress_words", click)
    at.button(key="curve_go").click().run()
    assert len(figures(at)) == 2
    monkeypatch.setattr(run_module, "progress_words", real)
    left = next(c.value for c in at.caption if "more attacks are run" in c.value)
    assert 0 < int(left.split("? ")[1].split()[0]) < 7
    at.button(key="curve_go").click().run()
    assert len(figures(at)) == 3


def test_progress_says_what_runs_and_how_long_it_will_take() -> None:
    from types import SimpleNamespace

    job = SimpleNamespace(kind=SimpleNamespace(title="CW-L2"), strength=1.0)
    assert run_module.progress_words(job, 0.25, 10.0) == "CW-L2 at strength 1: 25%, about 30 s left"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"fgsm_strength": "0"}, "Nothing was changed"),
        ({"fgsm_strength": "0.0001"}, "The attack failed]: the victim still says"),
        ({"shows": "other"}, "Nothing to attack]: the victim takes this"),
        ({"fgsm_strength": "7"}, "but it must be a number from 0 to 0.5; shown is **0.05**"),
        ({"attack": "magic"}, "attack = magic, but it must be one of fgsm, bim, deepfool, cw, pgd-detector"),
        ({"victim": "steps"}, "victim = steps, which names no classes of pictures or is not here"),
        ({"detector": "steps", "attack": "pgd-detector"}, "argmax_disagreement of this detector gives no gradients"),
        ({"detector": "steps"}, "argmax_disagreement of this detector gives no gradients"),
        ({"picture": "cifar10-sample-²"}, "the picture = cifar10-sample-², which is not among those that come with the project"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said_plainly(query: dict[str, str], sentence: str) -> None:
    if query.get("shows"):
        wrong = (int(expected(0.4).labels[0]) + 1) % 10
        query = {"shows": CLASSES[wrong]}
    assert sentence in texts(lab(**{"detector": "cifar10-invariance", **query}))


def test_a_detector_that_knows_something_else_gives_way_and_another_is_one_click_away() -> None:
    at = lab(detector="spoken-digits")
    assert "**spoken-digits** listens to sounds" in texts(at)
    at.button(key="menu_fashion-rotations").click().run()
    assert "**fashion-rotations** knows other pictures (noise)" in texts(at)
    assert "Judged by **cifar10-invariance** instead" in texts(at)
    at.button(key="use_judge").click().run()
    assert at.session_state["detector"] == "cifar10-invariance"
    assert "instead" not in texts(at)


def test_an_upload_is_brought_to_the_victim_s_size_and_a_bad_one_leaves_nothing_behind() -> None:
    at = lab(attack_from="File", detector="cifar10-invariance", picture="file-abc")
    assert "its fingerprint begins with abc" in texts(at)
    assert at.file_uploader(key="attack_file").proto.max_upload_size_mb == IMAGE_BYTES // 2**20
    large = random_images(1, size=40)[0]
    at.file_uploader(key="attack_file").set_value(("mine.png", png(large), "image/png")).run()
    shown = texts(at)
    assert "mine.png" in shown
    assert f"The victim sees {SIZE} x {SIZE} pixels: the middle square of the 40 x 40 that came" in shown
    at.file_uploader(key="attack_file").set_value(("bad.png", b"no picture", "image/png")).run()
    shown = texts(at)
    assert "bad.png: is not an image that can be read" in shown
    assert "Fooled" not in shown
    assert "failed" not in shown


def test_a_strength_between_the_steps_is_taken_from_the_link_as_it_is() -> None:
    at = lab(detector="cifar10-invariance", fgsm_strength="0.123")
    assert at.select_slider(key="fgsm_strength").value == 0.123
    assert f"length (L2) {expected(0.123).l2[0]:.3g}" in texts(at)


def test_how_often_the_attack_is_noticed_comes_from_stored_scores_of_this_detector(checkpoints: Path) -> None:
    """Eight pictures with five runs of five draws each: strangeness 9 is above all calibration scores, 0 below."""
    detector = load_detector("cifar10-invariance")
    attacked = np.zeros((8, 25), np.float32)
    attacked[:2, :], attacked[2:4, 10:] = 9, 9  # a quarter in all runs, another quarter in three of them
    sets = {"fgsm": attacked, "clean": np.zeros((8, 25), np.float32)}

    def store(scorer: str) -> None:
        for name, vectors in sets.items():
            one = ScoreSet(name, name, name != "clean", vectors)
            write_scores(place(checkpoints, "cifar10-invariance"), one, scorer, "cifar10-invariance")

    store(scorer_hash(detector.scorer))
    sentence = (
        "of 8 test pictures with which FGSM at strength 0.05 fooled cifar10-invariance, 40% are flagged"
    )
    assert sentence in texts(lab(detector="cifar10-invariance"))
    store("another")
    assert "How often" not in texts(lab(detector="cifar10-invariance"))
    shutil.rmtree(place(checkpoints, "cifar10-invariance"))


@pytest.fixture(scope="module")
def kept(checkpoints: Path) -> tuple[Report, Notebook, str]:
    """Report, notebook and screen with a curve and an attack on the detector, ties broken at random."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            outcome_module,
            "download_row",
            lambda *_, report, notebook, key: found.extend([report(), notebook()]),
        )
        at = lab(detector="cifar10-invariance", n="4", epsilon="0.3", p="smoothed")
        at.button(key="curve_go").click().run()
        at.button(key="worst_go").click().run()
        found.clear()
        at.run()
    return found[0], found[1], texts(at)


def test_who_knows_the_detector_is_shown_on_demand_beside_the_attack(kept) -> None:
    report, _, shown = kept
    worst = report.rows[-1]
    assert "a pixel changed by 1 gives other draws" in shown
    assert f"**p = {worst['p_value']:.3g}**; after FGSM it is {report.rows[1]['p_value']:.3g}" in shown
    assert (
        f"{report.rows[0]['p_value']:.3g} for the clean picture. No pixel value is moved by more than 0.05"
        in shown
    )
    assert worst["linf"] <= 0.05 + 1e-6
    assert worst["fooled"]


def test_slow_attacks_on_the_gallery_are_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the detectors that come with the project; nothing is attacked, only judged."""
    monkeypatch.delenv("IDECODE_CHECKPOINTS")
    monkeypatch.setattr(
        run_module.AttackJob, "run", lambda job, *_: refuse() if job.strength else untouched(job)
    )
    at = lab(detector="cifar10-rotations", attack="deepfool", picture="cifar10-sample-36")
    shown = texts(at)
    assert "in place of cat" in shown
    assert "after DeepFool it is" in shown  # beside the attack on the detector, which is there too
    assert not keys(at) & {"attack_go", "worst_go"}
