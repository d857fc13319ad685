"""Inspect: one input or many, the verdict, and why."""

import streamlit as st

from ui.frame import look
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import wait_for_input
from ui.frame.links import asked
from ui.frame.messages import guard
from ui.frame.modality import modality_of
from ui.frame.settings import sidebar
from ui.inspect.choose import NAMES, choose_samples, say_unmet

PANELS = ("files", "verdict", "aggregate", "versus", "growth", "drawn")
LIVE = {
    "epsilon": PANELS,
    "p": PANELS,
    "aggregate": (*PANELS, "strange"),
    "n": (*PANELS, "draws", "strange", "closer"),
}

with guard():
    st.html(look.STYLE)
    settings = sidebar(LIVE)
    wanted = asked("inspect", NAMES)
    st.title("Inspect")
    notices = st.container()
    config = get_configs()[settings.detector]
    pick, show = st.columns([1, 2.4], gap="large")
    with pick:
        samples = choose_samples(config)
    if not samples:
        modality = modality_of(config)
        show.info(
            f"Choose a {modality.thing} at the left, drop in files of your own, or {modality.capture.words}.",
            icon=":material/west:",
        )
        wait_for_input()
    with show:
        from ui.inspect.batch import score_batch
        from ui.inspect.inputs import look_at

        detector = get_detector(config)
        with st.spinner("Scoring ...", show_time=False):
            if len(samples) == 1:
                look_at(detector, samples[0], settings.seed)  # scores and variants from one pass
            samples, vectors = score_batch(detector, samples, settings.seed)
    from ui.inspect.draws import STYLE, draws
    from ui.inspect.export import export
    from ui.inspect.panels import chance, results
    from ui.inspect.strange import strange

    st.html(STYLE)
    with show:
        screen = results(config, detector, samples, vectors)
    if config.n_max > 1:
        st.markdown("### Why: each transform on its own")
        st.caption(
            "The input is transformed at random, and the model is asked what it sees. It learned to answer well for inputs "
            "that belong, so a high score is strange. Choose a point or a picture to enlarge that draw."
        )
    draws(detector, samples, vectors)
    strange(detector, samples)
    if config.n_max > 1:
        chance(detector, samples, vectors)
    export(config, detector, samples, vectors, screen)
    with notices:
        say_unmet(wanted, samples[screen.row])
