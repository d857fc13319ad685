"""The mark, charts, and the few rules of style that the theme cannot say: pictures inside choices, and their size."""

from typing import Any

import streamlit as st

CHART = {"displayModeBar": False}
"""Plotly's settings of every chart."""
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
.st-key-picture h3 {{ padding-top: 0; }}
.st-key-picture img, .st-key-chosen img {{ image-rendering: pixelated; border-radius: 8px; }}
</style>
"""

# A calibration histogram, the threshold, and one input beyond it; colours that show on a light and on a dark page.
_BARS = "".join(
    f'<rect x="{5 * i}" y="{30 - height}" width="4" height="{height}" rx="1" fill="#4A9FD8"/>'
    for i, height in enumerate((5, 12, 22, 26, 16, 7))
)
_MARK = (
    f'{_BARS}<path d="M33 2V30" stroke="#CC79A7" stroke-width="2" stroke-dasharray="4 3"/>'
    '<circle cx="41" cy="25.5" r="4.5" fill="#E8762C"/>'
)
_WORDS = (
    '<text x="56" y="24" font-family="Source Sans Pro,Segoe UI,Helvetica,Arial,sans-serif" font-size="20" '
    'font-weight="600" textLength="142" lengthAdjust="spacingAndGlyphs" fill="#3F92CC">iDECODe Studio</text>'
)
LOGO = f'<svg xmlns="http://www.w3.org/2000/svg" width="204" height="32" viewBox="0 0 204 32">{_MARK}{_WORDS}</svg>'


def style() -> None:
    st.html(STYLE)


def chart(figure: Any, *, key: str, alt: str) -> None:
    """A figure, and what it shows for screen readers."""
    st.plotly_chart(figure, key=key, config=CHART, alt=alt)


def show(figure: Any, *, key: str, look_for: str) -> None:
    """A figure, and below it what to look for, which is also its text for screen readers."""
    chart(figure, key=key, alt=look_for)
    st.caption(look_for)
