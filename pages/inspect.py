"""Inspect: one input or many, the verdict, and why."""

import streamlit as st

from ui.frame import look
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import wait_for_input
from ui.frame.links import asked
from ui.frame.messages import guard
from ui.frame.samples import modality_of
from ui.frame.session import tag_row
from ui.frame.settings import settings_bar
from ui.inspect.choose import NAMES, choose_samples, explain_unmet_link, offer_to_switch

with guard():
    st.html(look.STYLE)
    settings = settings_bar("Inspect")
    wanted = asked("inspect", NAMES)
    notices = st.container()
    config = get_configs()[settings.detector]
    with st.container(key="verdict_first"):
        pick, show = st.columns([1, 3], gap="medium")
    with pick:
        samples = choose_samples(config)
    with show:
        is_offered = offer_to_switch(config)
    if not samples:
        modality = modality_of(config)
        if not is_offered:
            show.info(
                f"Choose a {modality.thing} at the left, drop in files of your own, or {modality.capture.words}.",
                icon=":material/west:",
            )
        wait_for_input()
    with show:
        from ui.frame.scores import score_batch
        from ui.inspect.choose import look_at

        detector = get_detector(config)
        with st.spinner("Scoring ...", show_time=False):
            if len(samples) == 1:
                look_at(detector, samples[0], settings.seed)  # scores and variants from one pass
            samples, vectors = score_batch(detector, samples, settings.seed)
    from ui.inspect.batch import Batch
    from ui.inspect.draws import STYLE
    from ui.inspect.export import export
    from ui.inspect.verdict import depth, results

    batch = Batch(config, detector, samples, vectors)
    st.html(STYLE)
    with show:
        results(batch)
        tag_row(batch)
    depth(batch)
    export(batch)
    with notices:
        explain_unmet_link(wanted, samples[batch.row])
