"""Settings of the bar, Guarantee and Evaluate through AppTest: picture and sentence agree, links say what they get."""

import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest
from trust_pages import HOME, K, make_checkpoints, no_trouble, png
from trust_pages import open_page as page

from idecode_core.conformal import observed_band
from idecode_core.conformal.judge import judge
from idecode_core.conformal.statement import Guarantee
from idecode_core.files.names import ARCHIVE_BYTES, SCORES_BYTES
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.folder.stored import open_stored
from idecode_core.quality.methods import evaluate
from ui.frame import settings

CSV = "text/csv"
LENIENT = 0.1  # the share by which test scores are raised below


@pytest.fixture(scope="module", autouse=True)
def checkpoints(tmp_path_factory):
    """As in the other page tests, with iD test points that are a little stranger than the calibration set."""
    root = make_checkpoints(tmp_path_factory.mktemp("checkpoints"))
    folder = root / "fashion-rotations"
    stored = open_stored(folder)
    raised = ScoreSet("fashion-test", "Fashion-MNIST", False, stored.id_set.score_vectors * (1 + LENIENT))
    write_scores(folder, raised, stored.settings.scorer_sha256)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDECODE_CHECKPOINTS", str(root))
        yield root


def text(app: AppTest) -> str:
    shown = [*app.markdown, *app.info, *app.warning, *app.caption]
    return "\n".join(element.value for element in shown).replace("\\", "")


def warnings(app: AppTest) -> str:
    return "\n".join(element.value for element in app.warning).replace("\\", "")


def counted(checkpoints, n: int, epsilon: float) -> int:
    """iD test points flagged in the first run, by counting."""
    stored = open_stored(checkpoints / "fashion-rotations")
    calibration = stored.calibration.score_vectors[:, :n].sum(axis=1)
    scores = stored.id_set.score_vectors[:, :n].astype(np.float64).sum(axis=1)
    p = [(np.sum(calibration >= score) + 1) / (K + 1) for score in scores]
    return int(np.sum(np.array(p) < epsilon))


def test_a_link_with_any_epsilon_shows_that_epsilon_and_says_nothing():
    app = page("guarantee", {"epsilon": "0.04619"})
    no_trouble(app)
    assert app.session_state["epsilon"] == 0.04619
    assert app.number_input(key="exact").value == 0.04619
    assert "flagged with probability at most 0.04619" in text(app)
    assert warnings(app) == ""


def test_another_way_to_write_the_same_epsilon_is_understood():
    app = page("guarantee", {"epsilon": "1.23e-1"})
    no_trouble(app)
    assert app.session_state["epsilon"] == 0.123
    assert warnings(app) == ""


@pytest.mark.parametrize(
    ("link", "sentences"),
    [
        ({"epsilon": "1.7"}, ["epsilon = 1.7", "between 1e-06 and 0.99", "shown is **0.05**"]),
        ({"n": "999"}, ["n = 999", "1 to 20 transforms", "shown is **5**"]),
        (
            {"detector": "no-such-one"},
            ["detector = no-such-one", "not here", "shown is **fashion-rotations**"],
        ),
        ({"aggregate": "median", "p": "exact"}, ["aggregate = median", "p = exact"]),
        ({"g_k": "123"}, ["k = 123", f"shown is **{K}**"]),
        ({"g_k": "9" * 5000}, ["k = 999", f"shown is **{K}**"]),
    ],
)
def test_a_link_that_cannot_be_followed_says_so(link, sentences):
    app = page("guarantee", link)
    no_trouble(app)
    for sentence in sentences:
        assert sentence in warnings(app)


def test_a_notice_stays_until_a_setting_changes():
    app = page("evaluate", {"n": "999", "ev_set": "No set"})
    assert "n = 999" in warnings(app)
    assert "the OOD set = No set" in warnings(app)
    app.run()
    assert "n = 999" in warnings(app)
    app.slider(key="n").set_value(4).run()
    no_trouble(app)
    assert "n = 999" not in warnings(app)


def test_a_link_that_is_followed_has_no_notice():
    app = page(
        "guarantee",
        {"n": "7", "epsilon": "0.10", "detector": "bare", "aggregate": "max", "p": "smoothed", "seed": "3",
         "g_k": "1000", "g_sure": "99%", "g_span": "epsilon to 0.1", "g_view": "Rate minus epsilon"},
    )  # fmt: skip
    no_trouble(app)
    assert (app.session_state["n"], app.session_state["detector"]) == (7, "bare")
    assert warnings(app) == ""


def test_epsilon_can_be_typed_and_the_slider_follows():
    app = page("guarantee")
    app.number_input(key="exact").set_value(0.0333).run()
    no_trouble(app)
    assert app.select_slider(key="epsilon").value == 0.0333
    assert "at most 0.0333" in text(app)
    app.select_slider(key="epsilon").set_value(0.1).run()
    no_trouble(app)
    assert app.number_input(key="exact").value == 0.1


def test_the_corrected_epsilon_is_one_click_away_and_so_is_the_way_back():
    app = page("guarantee")
    corrected = Guarantee(K, 0.05).corrected
    app.button(key="g_use").click().run()
    no_trouble(app)
    assert app.session_state["epsilon"] == corrected
    assert f"flagged with probability at most {corrected:g}" in text(app)
    assert "keep a true rate of at most" in text(app)
    app.button(key="g_use").click().run()
    assert app.session_state["epsilon"] == 0.05


def test_a_rate_above_epsilon_is_said_with_its_band_and_the_remedy(checkpoints):
    app = page("guarantee", n=4)
    no_trouble(app)
    flagged = counted(checkpoints, 4, 0.05)
    assert flagged / 300 > 0.05, "the test needs a rate above epsilon"
    low, high = observed_band(K, 0.05, 300, level=0.99)
    assert f"**{flagged} of 300** iD test inputs flagged" in text(app)
    assert "above epsilon = 0.05" in text(app)
    assert f"between {low:.2%} and {high:.2%} in 99% of cases" in text(app)
    assert app.button(key="g_use").label == "Use it"


def test_evaluate_and_guarantee_count_the_same_false_alarms(checkpoints):
    flagged = counted(checkpoints, 4, 0.05)
    for name in ("evaluate", "guarantee"):
        app = page(name, n=4, epsilon=0.05)
        no_trouble(app)
        assert f"**{flagged} of 300**" in text(app)
        assert f"is above epsilon = 0.05. Calibration sets of {K} together" in text(
            app
        )  # and whether it is chance
    assert "Guarantee shows the smoothed ones" in text(page("evaluate", p="smoothed"))


def test_both_views_of_the_rates_are_there():
    app = page("guarantee", g_view="minus")
    no_trouble(app)
    assert "what is above 0 is above the bound" in text(app)
    assert "inside the grey band is chance" in text(page("guarantee"))


def test_the_menu_groups_pictures_and_sounds_and_says_how_good_each_is(checkpoints):
    app = page("evaluate", menu=True)
    no_trouble(app)
    stored = open_stored(checkpoints / "fashion-rotations")
    aurocs = [evaluate(stored.calibration, stored.id_set, one, 5).auroc.mean for one in stored.ood_sets]
    assert "### Pictures" in text(app)
    assert f"{stored.settings.summary} · AUROC {100 * np.mean(aurocs):.1f}, weak" in text(app)
    assert "no test scores are stored" in text(app)
    app.button(key="menu_bare").click().run()
    no_trouble(app)
    assert app.session_state["detector"] == "bare"
    assert app.query_params["detector"] == "bare"


def test_several_detectors_are_laid_over_each_other():
    app = page("evaluate", {"ev_detectors": "gone"}, ev_view="Detectors", n=3)
    no_trouble(app)
    assert "a detector = gone, which is not here" in warnings(app)
    app.multiselect(key="ev_detectors").set_value(["bare"]).run()
    no_trouble(app)
    assert "are stored with bare" in text(app)
    table = app.dataframe[0].value
    assert list(table["Detector"]) == ["fashion-rotations"]
    assert {"AUROC", "95% interval", "FPR at 95% TPR"} <= set(table.columns)


def test_the_table_has_intervals_and_fpr(checkpoints):
    app = page("evaluate", n=3)
    table = app.dataframe[0].value
    stored = open_stored(checkpoints / "fashion-rotations")
    for i, ood_set in enumerate(stored.ood_sets):
        known, strange = (
            judge(stored.calibration, one.score_vectors, n=3).p_values for one in (stored.id_set, ood_set)
        )
        kept = np.sort(known)[
            int(np.floor(0.05 * known.size))
        ]  # 95% of the iD points have at least this p-value
        first = np.mean(strange >= kept)
        assert float(table.loc[i, "FPR: iDECODe"].split(" ±")[0]) == pytest.approx(100 * first, abs=3)
        low, high = (float(end) for end in table.loc[i, "AUROC: 95% interval"].split(" to "))
        assert low <= float(table.loc[i, "AUROC: iDECODe"].split(" ±")[0]) <= high


def test_own_scores_name_their_columns_and_warn():
    app = page("evaluate", ev_source="My scores", n=2)
    rows = "".join(f"{i},{i % 7}\n" for i in range(12))
    app.file_uploader(key="own_id").set_value(("id.csv", f"number,score\n{rows}".encode(), CSV))
    app.file_uploader(key="own_ood").set_value(("ood.csv", ("-5,-3\n" * 40).encode(), CSV))
    app.file_uploader(key="own_calibration").set_value(("cal.csv", ("-4,-3\n" * 50).encode(), CSV)).run()
    no_trouble(app)
    assert "id.csv: columns number, score" in text(app)
    assert "ood.csv: columns 1, 2" in text(app)
    assert "Only 12 iD points" in warnings(app)
    assert "below 50" in warnings(app)
    assert "All 12 iD points are flagged" in warnings(app)
    assert "Column 1 only counts the rows" in warnings(app)


def test_few_files_of_one_s_own_are_evaluated_with_a_warning():
    app = page("evaluate", ev_source="My files")
    for slot, first in (("id", 1), ("ood", 4)):
        files = [(f"{i}.png", png(i), "image/png") for i in range(first, first + 3)]
        app.file_uploader(key=f"evaluate_{slot}_files").set_value(files)
    app.run()
    next(button for button in app.button if button.label == "Score 6 files").click().run()
    no_trouble(app)
    assert "Only 3 iD points and 3 OOD points" in warnings(app)


def test_upload_limits_are_one_truth():
    config = tomllib.loads((HOME / ".streamlit" / "config.toml").read_text())
    assert config["server"]["maxUploadSize"] * 2**20 == ARCHIVE_BYTES
    app = page("evaluate", ev_source="My scores")
    assert f"up to {SCORES_BYTES // 2**20} MB each" in text(app)
    assert {box.proto.max_upload_size_mb for box in app.file_uploader} == {SCORES_BYTES // 2**20}


class Rerun(Exception):
    """In place of Streamlit's."""


@pytest.mark.parametrize("script", ["app.py", "pages/inspect.py"])
def test_a_visit_that_began_at_a_page_goes_through_the_app_though_another_visitor_did_so_before(
    monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """Streamlit's flag is one for all visitors: cleared by another one here. A page that is run for itself stays as it is."""

    def rerun() -> None:
        raise Rerun

    monkeypatch.setattr(PagesManager, "uses_pages_directory", False)
    monkeypatch.setattr(
        settings, "get_script_run_ctx", lambda: SimpleNamespace(main_script_path=f"/here/{script}")
    )
    monkeypatch.setattr(settings.st, "session_state", {})
    monkeypatch.setattr(settings.st, "rerun", rerun)
    monkeypatch.setattr(settings.session, "take_token", lambda: None)
    if script == "app.py":
        with pytest.raises(Rerun):
            settings.enter_by_app(has_bar=True)
        settings.st.session_state["visit"] = 1  # app.py has run
    settings.enter_by_app(has_bar=True)
