"""Guarantee: what the bound on false detections promises, what it does not, and how it looks on data."""

import streamlit as st

from ui.cache import get_configs, get_detector
from ui.guarantee_view import LIVE, guarantee
from ui.messages import guard
from ui.settings import sidebar

with guard():
    config = get_configs()[sidebar(LIVE).detector]
    st.title("Guarantee")
    guarantee(config, get_detector(config["folder"]))
