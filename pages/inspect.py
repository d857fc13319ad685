"""Inspect: one input or many, the verdict, and why."""

import streamlit as st

from ui.cache import get_configs, get_detector
from ui.look import style
from ui.messages import guard
from ui.settings import sidebar

PANELS = ("files", "verdict", "aggregate", "growth", "drawn")
LIVE = dict.fromkeys(("epsilon", "aggregate", "p"), PANELS) | {"n": (*PANELS, "draws", "sound")}

with guard():
    style()
    settings = sidebar(LIVE)
    st.title("Inspect")
    config = get_configs()[settings.detector]
    pick, show = st.columns([1, 2.4], gap="large")
    with pick:
        if config.get("modality") == "audio":
            from ui.audio_input import choose_sounds

            samples = choose_sounds(config)
        else:
            from ui.image_input import choose_images

            samples = choose_images(config)
    if not samples:
        show.info(
            "Choose a sound at the left, drop in files of your own, or record one."
            if config.get("modality") == "audio"
            else "Choose a picture at the left, drop in files of your own, or take a picture.",
            icon=":material/west:",
        )
        st.stop()
    with show, st.spinner("Scoring ...", show_time=False):
        from ui.scores import score_vectors

        detector = get_detector(config["folder"])
        vectors = score_vectors(detector, samples, settings.seed)
    from ui.draws_view import draws
    from ui.inspect_export import export
    from ui.inspect_view import chance, results

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
