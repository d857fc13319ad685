"""The few rules of style that the theme cannot say: pictures inside choices, and their size."""

import streamlit as st

THUMB = 50
DRAW = 72

STYLE = f"""
<style>
.st-key-belonging button, .st-key-foreign button {{ padding: 2px; border-radius: 8px; min-height: 0; height: auto; }}
.st-key-belonging button img, .st-key-foreign button img {{
  height: {THUMB}px; width: {THUMB}px; max-height: none; max-width: none; object-fit: cover; border-radius: 6px; margin: 0;
  vertical-align: top;
}}
.st-key-draws button {{ padding: 4px 4px 2px; border-radius: 8px; min-height: 0; height: auto; }}
.st-key-draws button p {{ display: flex; flex-direction: column; align-items: center; font-size: 0.78rem; gap: 2px; }}
.st-key-draws button img {{
  height: {DRAW}px; width: {DRAW}px; max-height: none; max-width: none; border-radius: 5px; image-rendering: pixelated;
}}
.st-key-belonging button[aria-checked="true"], .st-key-foreign button[aria-checked="true"],
.st-key-draws button[aria-checked="true"] {{ box-shadow: 0 0 0 2px #CC79A7; border-color: #CC79A7; }}
.st-key-picture img, .st-key-chosen img {{ image-rendering: pixelated; border-radius: 8px; }}
</style>
"""


def style() -> None:
    st.html(STYLE)
