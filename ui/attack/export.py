"""What the Attack lab shows, as files to keep."""

from idecode_core.folder.detector import scorer_hash
from idecode_core.plots.attack import as_pixels
from idecode_core.report.attack import AttackShown, Attempt, attack_notebook, attack_report
from idecode_core.report.content import Figure, Report
from ui.attack.curve import LOOK_FOR, curve_figure
from ui.attack.outcome import LOOK_FOR_DRAWS, LOOK_FOR_SHARES, Lab, draws_figure, shares_figure, verdict_on
from ui.attack.run import Scored
from ui.frame.export import download_row
from ui.frame.samples import png
from ui.frame.settings import Chosen


def export(lab: Lab) -> None:
    """Download buttons for what is on the screen at the click."""

    def report() -> Report:
        return attack_report(shown(lab), figures(lab))

    download_row("attack", report=report, notebook=lambda: attack_notebook(shown(lab)), key="attack_export")


def shown(lab: Lab) -> AttackShown:
    """The screen's results: the chosen attack, and what was computed beside it."""
    screen, settings = lab.screen, lab.screen.settings
    others = [
        scored for scored in screen.curve if scored.attacked.strength not in (0, lab.chosen.attacked.strength)
    ]
    if screen.worst is not None:
        others.append(screen.worst)
    return AttackShown(
        picture=lab.target.sample.name,
        detector=lab.config.folder.name,
        scorer_sha256=scorer_hash(lab.detector.scorer),
        calibration_sha256=lab.detector.calibration.sha256,
        victim=lab.choice.config.folder.name,
        victim_sha256=lab.target.victim_sha256,
        title=lab.choice.kind.title,
        n=min(settings.n, lab.detector.calibration.n_max),
        epsilon=settings.epsilon,
        aggregate=settings.aggregate,
        smoothed=settings.smoothed,
        seed=settings.seed,
        clean=attempt(lab, lab.clean, settings),
        chosen=attempt(lab, lab.chosen, settings),
        others=tuple(attempt(lab, scored, settings) for scored in others),
    )


def attempt(lab: Lab, scored: Scored, settings: Chosen) -> Attempt:
    return Attempt(
        scored.attacked,
        lab.vector(scored, settings),
        verdict_on(lab.detector, scored, settings),
        scored.content_hash,
        png(as_pixels(scored.attacked.attacked[0].numpy())),
    )


def figures(lab: Lab) -> tuple[Figure, ...]:
    settings, scored = lab.screen.settings, lab.screen.curve
    drawn = [
        Figure(shares_figure(lab), f"What the victim says. {LOOK_FOR_SHARES}"),
        Figure(draws_figure(lab, settings), f"What the detector sees. {LOOK_FOR_DRAWS}"),
    ]
    if scored:
        figure = curve_figure(lab, scored, settings)
        drawn.append(Figure(figure, f"The p-value along the strength. {LOOK_FOR}"))
    return tuple(drawn)
