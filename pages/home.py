"""Home: what this is, a live example, the detectors, a way in to each task."""

import streamlit as st

from ui.frame import look
from ui.frame.cache import get_configs
from ui.frame.catalogue import pages
from ui.frame.detectors import in_order
from ui.frame.messages import guard
from ui.frame.settings import sidebar
from ui.home.cards import detector_card, headline, in_rows, show_broken, show_facts, way_in

with guard():
    st.html(look.STYLE)
    settings = sidebar(
        {"epsilon": ("example",), "n": ("example",), "aggregate": ("example",), "p": ("example",)}
    )
    st.title("iDECODe Studio")
    st.markdown(
        "#### Is this input like what the model was trained on? You get an answer with a p-value, and of inputs that do "
        "belong at most the share you allow is flagged."
    )
    example = st.container()
    st.markdown("### What would you like to do?")
    tasks = [page for page in pages() if page.promise]
    in_rows(tasks, way_in)
    st.markdown("### Detectors at hand")
    found = get_configs()
    configs = [found[name] for name in in_order(found)]
    places = in_rows(configs, detector_card)
    show_broken()
    # Everything above paints at once; what follows needs the model.
    with example:
        from ui.home.example import live_example

        live_example(found[settings.detector])
    for place, config in zip(places, configs, strict=True):
        show_facts(place, config, headline(config))
