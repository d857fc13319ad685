"""The calibration's notebook finds the same comparison in the files themselves."""

# ruff: noqa: F811  `calibration` and others are fixtures of another file

from dataclasses import replace

from small import random_images
from test_page_exports import calibration, folder, run, stored  # noqa: F401  fixtures

from idecode_core import load_detector
from idecode_core.conformal import ranking
from idecode_core.conformal.calibration import Calibration
from idecode_core.conformal.judge import judge
from idecode_core.conformal.same_source import compare
from idecode_core.conformal.settings import Settings
from idecode_core.draws import content_hash
from idecode_core.quality.user_data import Catch, Lost
from idecode_core.report import InspectedSample
from idecode_core.report.calibrations import calibration_notebook
from ui.frame.samples import png


def test_the_calibration_s_notebook_finds_the_same_comparison_in_the_files_themselves(run, folder):
    detector = load_detector(folder)
    files = [
        InspectedSample(f"{i}.png", png(x), content_hash(x), (), None) for i, x in enumerate(random_images(8))
    ]
    own = Calibration(detector.score_vectors([one.data for one in files], n=20, seed=4), seed=4)
    p = judge(detector.calibration, own.score_vectors, n=5).p_values
    comparison = compare(own.scores(5), detector.calibration.scores(5))
    settings = Settings(5, 0.1, None, "sum", 4, False)
    sets = {"it's <b>": detector.score_vectors(random_images(6, seed=9), n=20, seed=4)}
    before, after = (
        (ranking.p_values(calibration.scores(5), sets["it's <b>"][:, :5].sum(axis=1)) < 0.2).sum()
        for calibration in (detector.calibration, own)
    )
    lost = Lost(0.2, own.k, (Catch("it's <b>", 6, int(before), int(after)),))
    settings = replace(settings, epsilon=0.2)
    space = run(calibration_notebook(detector, files, own, p.tolist(), comparison, sets, lost, settings))
    assert space["comparison"] == comparison
    assert space["lost"] == lost
    assert space["mine"].calibration.k == 8
    assert len(space["session"]) == 8
