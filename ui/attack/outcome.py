"""The panels of the Attack lab, each a fragment that reads the settings as they are now and slices stored scores; and what they show, as
files to keep."""

import html

import streamlit as st

from idecode_core.attacks.kinds import set_name
from idecode_core.conformal.judge import Verdict
from idecode_core.errors import IdecodeError
from idecode_core.folder.detector import scorer_hash
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from idecode_core.folder.shelf import DRAWS_PER_RUN, Scores, open_scores, score_paths
from idecode_core.folder.stored import ADVERSARIAL, CLEAN
from idecode_core.plots.attack import as_pixels, class_shares, draws_before_and_after, magnified
from idecode_core.quality.methods import flagged_share
from idecode_core.report.attack import (
    AttackShown,
    Attempt,
    FirstChoice,
    Outcome,
    attack_notebook,
    attack_report,
    explanation,
    headline,
    outcome_of,
    shares,
)
from idecode_core.report.content import Figure, Report
from ui.attack.lab import LOOK_FOR, SIDE, Lab, curve_figure, verdict_on
from ui.attack.run import Scored
from ui.frame.cache import Stamps, stamps
from ui.frame.export import download_row
from ui.frame.look import show
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.samples import data_uri, png
from ui.frame.settings import Chosen, current

STYLE = """
<style>
.st-key-attacked img, .st-key-worst img { image-rendering: pixelated; border-radius: 8px; }
.st-key-attack [data-testid="stButtonGroup"] button { border-radius: 0.5rem; margin: 0 0.25rem 0.25rem 0; }
</style>
"""
FLICK_STYLE = """
button { position: relative; display: block; padding: 0; border: none; background: none; cursor: pointer; width: 100%; }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; border-radius: 8px; }
img { display: block; width: 100%; image-rendering: pixelated; border-radius: 8px; }
span { position: absolute; left: 6px; bottom: 6px; padding: 1px 7px; border-radius: 6px; font: 600 12px var(--st-font, sans-serif);
  color: #fff; background: #0c151ecc; }
"""
FLICK = """
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button"), picture = button.querySelector("img"), word = button.querySelector("span");
  let clean = false;
  const show = () => {
    picture.src = clean ? data.clean : data.attacked;
    picture.alt = `${data.name}, ${clean ? "clean" : "attacked"}`;
    word.textContent = clean ? "clean" : "attacked: click to flick";
  };
  button.onclick = () => { clean = !clean; show(); };
  show();
}
"""
LOOK_FOR_SHARES = (
    "An attack succeeds when the clean picture's first class is right and the attacked picture's is another."
)
LOOK_FOR_DRAWS = "Each dot is one random transform. Where diamonds lie above the grey band, the detector finds the attacked picture strange."


@panel("attack_verdict", on=JUDGED)
def verdict(lab: Lab) -> None:
    """The outcome as a sentence, then the pictures with both p-values."""
    settings = current()
    lab.screen.settings = settings
    before, after = (verdict_on(lab.detector, scored, settings) for scored in (lab.clean, lab.chosen))
    outcome = outcome_of(lab.chosen.attacked, before, after)
    show_words(lab, outcome)
    pictures(lab, outcome)


def show_words(lab: Lab, outcome: Outcome) -> None:
    st.caption(
        f"{escape(lab.target.sample.name)} · {escape(lab.choice.kind.title)} on {escape(lab.target.victim.name)}, judged by "
        f"{escape(lab.config.name)}"
    )
    colour, icon = "blue", "shield"
    if outcome.is_fooled:
        colour, icon = ("orange", "flag") if outcome.attacked.is_ood else ("violet", "visibility_off")
    conclusion, reason = headline(outcome)
    means, does_not = explanation(outcome)
    st.markdown(f"## :{colour}[:material/{icon}: {escape(conclusion)}]: {escape(reason)}")
    st.markdown(f"**It means:** {escape(means)}  \n**It does not mean:** {escape(does_not)}")


def pictures(lab: Lab, outcome: Outcome) -> None:
    """Clean, attacked, and what was changed; the clean one only where nothing was."""
    attacked = lab.chosen.attacked
    clean, after = attacked.clean[0].numpy(), attacked.attacked[0].numpy()
    shown = [("clean", as_pixels(clean), f"**Clean:** {said_of(outcome.before, outcome.clean)}")]
    if outcome.is_changed:
        change, factor = magnified(clean, after)
        linf, l2 = attacked.linf[0], attacked.l2[0]
        size = f"largest change of a pixel value {linf:.3g} ({255 * linf:.3g} of 255 steps), length (L2) {l2:.3g}"
        shown += [
            ("attacked", as_pixels(after), f"**Attacked:** {said_of(outcome.after, outcome.attacked)}"),
            ("difference", change, f"**Difference x {factor}**  \n:small[grey is none: {size}]"),
        ]
    with st.container(horizontal=True, key="attacked"):
        for name, pixels, caption in shown:
            with st.container(width=SIDE, gap="xxsmall"):
                if name == "attacked":
                    flick(png(pixels), png(as_pixels(clean)), SIDE, lab.target.sample.name)
                else:
                    st.image(png(pixels), width=SIDE, alt=f"{lab.target.sample.name}, {name}")
                st.markdown(caption)


def flick(attacked: bytes, clean: bytes, width: int, name: str) -> None:
    """The attacked picture, which a click or a key flicks to the clean one and back, in the same place: the eye sees what moves.
    Nothing is asked of the server."""
    html = f'<button type="button"><img alt="" width="{width}" height="{width}"><span></span></button>'
    component = st.components.v2.component("flick", html=html, css=FLICK_STYLE, js=FLICK)
    component(
        key="flick",
        data={"attacked": data_uri(attacked), "clean": data_uri(clean), "name": name},
        width=width,
    )


def said_of(answer: FirstChoice, verdict: Verdict) -> str:
    """What the victim says, and below it what the detector says."""
    colour = "orange" if verdict.is_ood else "blue"
    return f"{escape(str(answer))}  \n**p = {verdict.p_value:.3g}**, :{colour}[{verdict.answer}]"


@panel("attack_charts", on=JUDGED)
def charts(lab: Lab) -> None:
    """The victim's classes, and the detector's draws, before and after."""
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("### What the victim says")
        show(shares_figure(lab), key="shares_chart", look_for=LOOK_FOR_SHARES)
    with right:
        st.markdown("### What the detector sees")
        show(draws_figure(lab, current()), key="attack_draws_chart", look_for=LOOK_FOR_DRAWS)


def shares_figure(lab: Lab) -> object:
    attacked = lab.chosen.attacked
    return class_shares(attacked.classes, shares(attacked.before[0]), shares(attacked.after[0]))


def draws_figure(lab: Lab, settings: Chosen) -> object:
    return draws_before_and_after(
        lab.vector(lab.clean, settings),
        lab.vector(lab.chosen, settings),
        lab.detector.calibration.score_vectors.ravel(),
        [[html.escape(text) for text in draw_words(scored)] for scored in (lab.clean, lab.chosen)],
    )


def draw_words(scored: Scored) -> list[str]:
    """For each draw: what was applied and what the detector's model said; of a draw with several variants, of the strangest."""
    strangest: dict[int, tuple[float, str]] = {}
    for variant in scored.inspected.variants:
        words = f"{variant.member} {variant.applied}: {variant.predicted}".strip()
        if variant.draw not in strangest or variant.score > strangest[variant.draw][0]:
            strangest[variant.draw] = (variant.score, words)
    return [strangest[draw][1] for draw in sorted(strangest)]


def sizes(lab: Lab) -> None:
    """Where victim, picture and detector differ in size, what that does."""
    size, (width, height) = lab.target.victim.size, lab.target.original
    if (width, height) != (size, size):
        st.caption(
            f"The victim sees {size} x {size} pixels: the middle square of the {width} x {height} that came, resized. That is "
            "what is attacked and judged here, clean too, so its p-value is not quite that of Inspect, which judges the picture as it came."
        )
    scorer = lab.detector.scorer
    looks_at = {
        part.preprocessing.size
        for part in getattr(scorer, "members", (scorer,))
        if hasattr(part, "preprocessing")
    }
    if others := looks_at - {size}:
        words = " and ".join(f"{side} x {side}" for side in sorted(others))
        st.caption(
            f"{escape(lab.config.name)} looks at {words} pixels, so attacked pictures are resized for it, which may blur what the "
            "attack has done."
        )


@panel("attack_rate", on=JUDGED)
def rate(lab: Lab) -> None:
    """One sentence from stored scores, under the settings of this moment; nothing where none are stored."""
    settings, kind = current(), lab.choice.kind
    calibration = lab.detector.calibration
    n = min(settings.n, calibration.n_max)
    scores = stored(lab.choice.config, lab.config)
    name = set_name(kind.name, lab.config.folder.name if kind.on_detector else None)
    if scores is None or name not in scores.sets or n > DRAWS_PER_RUN:
        return
    attacked, clean = (
        flagged_share(calibration, scores.sets[shown].score_vectors, n, settings.epsilon, settings.aggregate)
        for shown in (name, CLEAN)
    )
    st.markdown(
        f":small[**How often {escape(lab.config.name)} notices:** of {len(scores.sets[name]):,} test pictures with which "
        f"{escape(kind.title)} at strength {kind.default_for(lab.target.victim.dense):g} fooled {escape(lab.target.victim.name)}, "
        f"{attacked:.0%} are flagged at epsilon = {settings.epsilon:g}; of {len(scores.sets[CLEAN]):,} clean ones {clean:.0%}.]"
    )


def stored(victim: FolderSettings, judge: FolderSettings) -> Scores | None:
    """The scores of attacked test pictures, where there are any that were made with this detector."""
    folder, scorer = checkpoint_root() / ADVERSARIAL / victim.folder.name, judge.folder.name
    if not score_paths(folder, scorer):
        return None
    try:
        return _stored(str(folder), scorer, judge.scorer_sha256, stamps(folder, f"scores/{scorer}/*.npz"))
    except IdecodeError:
        return None


@st.cache_resource(show_spinner=False, max_entries=12)
def _stored(folder: str, scorer: str, scorer_sha256: str, stamps: Stamps) -> Scores:
    return open_scores(folder, scorer, scorer_sha256)


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
