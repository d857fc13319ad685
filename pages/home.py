"""Home: what this is, a live example, the detectors, a way in to each task."""

import streamlit as st

from ui.settings import sidebar

st.title("iDECODe Studio")
sidebar()
