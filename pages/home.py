"""Home: what this is, a live example, the detectors, a way in to each task."""

import streamlit as st

from ui.frame.cache import get_configs
from ui.frame.catalogue import pages
from ui.frame.look import style
from ui.frame.messages import guard
from ui.frame.settings import in_order, sidebar
from ui.home.cards import detector_card, headline, show_broken, show_facts, way_in

CARDS_PER_ROW = 4

with guard():
    style()
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
    for first in range(0, len(tasks), CARDS_PER_ROW):
        for column, page in zip(
            st.columns(CARDS_PER_ROW), tasks[first : first + CARDS_PER_ROW], strict=False
        ):
            with column:
                way_in(page)
    st.markdown("### Detectors at hand")
    found = get_configs()
    configs = [found[name] for name in in_order(found)]
    cards = []
    for first in range(0, len(configs), CARDS_PER_ROW):
        for column, config in zip(
            st.columns(CARDS_PER_ROW), configs[first : first + CARDS_PER_ROW], strict=False
        ):
            with column:
                cards.append((detector_card(config), config))
    show_broken()
    # Everything above paints at once; what follows needs the model.
    with example:
        from ui.home.example import live_example

        live_example(found[settings.detector])
    for place, config in cards:
        show_facts(place, config, headline(config))
