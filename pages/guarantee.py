"""Guarantee: what the bound on false detections promises, what it does not, and how it looks on data."""

import streamlit as st

from ui.frame.cache import get_configs
from ui.frame.messages import guard
from ui.frame.settings import sidebar
from ui.guarantee.panels import LIVE, show_guarantee

with guard():
    config = get_configs()[sidebar(LIVE).detector]
    st.title("Guarantee")
    show_guarantee(config)
