"""Inspect: one input or many, the verdict, and why."""

import streamlit as st

from ui.frame.cache import get_configs, get_detector
from ui.frame.look import style
from ui.frame.messages import guard
from ui.frame.modality import modality_of
from ui.frame.settings import sidebar
from ui.inspect.choose import choose_samples

PANELS = ("files", "verdict", "aggregate", "growth", "drawn")
LIVE = dict.fromkeys(("epsilon", "aggregate", "p"), PANELS) | {"n": (*PANELS, "draws", "closer")}

with guard():
    style()
    settings = sidebar(LIVE)
    st.title("Inspect")
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
        st.stop()
    with show, st.spinner("Scoring ...", show_time=False):
        from ui.frame.scores import inspect, score_vectors

        detector = get_detector(config)
        if len(samples) == 1:
            inspect(detector, samples[0], settings.seed)  # scores and variants from one pass
        vectors = score_vectors(detector, samples, settings.seed)
    from ui.inspect.draws import draws
    from ui.inspect.export import export
    from ui.inspect.panels import chance, results

    with show:
        screen = results(detector, samples, vectors)
    st.markdown("### Why: each transform on its own")
    st.caption(
        "The input is transformed at random, and the model is asked what it sees. It learned to answer well for inputs "
        "that belong, so a high score is strange. Choose a point or a picture to enlarge that draw."
    )
    draws(detector, samples, vectors)
    chance(detector, samples, vectors)
    export(detector, samples, vectors, screen)
