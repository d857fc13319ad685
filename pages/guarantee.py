"""Guarantee: what the bound on false detections promises, what it does not, and how it looks on data."""

import streamlit as st

from ui.frame.cache import get_configs
from ui.frame.messages import guard
from ui.frame.settings import sidebar

LIVE = dict.fromkeys(("n", "epsilon", "aggregate", "p", "seed"), ("guarantee",))

with guard():
    config = get_configs()[sidebar(LIVE).detector]
    st.title("Guarantee")
    from ui.guarantee.panels import show_guarantee

    show_guarantee(config)
