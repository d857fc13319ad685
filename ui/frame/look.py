"""The mark, charts in the page's theme, and the rules of style that the theme cannot say: pictures inside choices, the phone,
the presenter view."""

from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    import plotly.graph_objects as go

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

PRESENT = "present"
"""Key of the switch for the presenter view, and its name in the link."""
PRESENTER_STYLE = """
<style>
html { font-size: 21px; }
[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"] { display: none; }
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p { font-size: 1rem; }
</style>
"""
PHONE_STYLE = """
<style>
@media (max-width: 640px) {
  /* The sidebar would cover the page: here it stands above it, the pages as one row to swipe. */
  [data-testid="stAppViewContainer"] { display: block; overflow-y: auto; padding-top: 3.5rem; }
  [data-testid="stAppViewContainer"] > div { height: auto; }
  [data-testid="stMain"] { position: static; height: auto; overflow: visible; }
  [data-testid="stMainBlockContainer"] { padding: 0.75rem 1rem 4rem; }
  [data-testid="stSidebar"] {
    position: static !important; transform: none !important; width: 100% !important; min-width: 100% !important;
    max-width: 100% !important; height: auto !important; visibility: visible !important; border: none; z-index: auto;
    transition: none !important;  /* or it would slide in from the side after the page has been read */
  }
  [data-testid="stSidebarContent"] { width: 100%; height: auto; overflow: visible; }
  [data-testid="stSidebarHeader"], [data-testid="stSidebarCollapseButton"], [data-testid="stSidebarResizeHandle"],
  [data-testid="stExpandSidebarButton"], [data-testid="stNavSectionHeader"], [data-testid="stSidebarNavSeparator"] { display: none; }
  [data-testid="stSidebarNav"] { overflow-x: auto; padding-top: 0.25rem; }
  [data-testid="stSidebarNavItems"], [data-testid="stSidebarNavItems"] > div { display: flex; flex-direction: row; margin: 0; padding: 0; }
  [data-testid="stSidebarNavItems"] li { flex: none; }
  [data-testid="stSidebarNavLink"] { white-space: nowrap; padding-right: 0.75rem; }
  [data-testid="stSidebarUserContent"] { padding: 0.25rem 1rem 0.5rem; }
  [data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] { gap: 0.4rem; }
}
</style>
"""

INK = {"light": "#FFFFFF", "dark": "#10161D"}
"""Text on what has the primary colour. Streamlit writes white in both themes; on the dark one's light blue that is 2.7:1."""
DARK_STYLE = f"""
<style>
[data-testid="stBaseButton-primary"]:enabled, [data-testid="stBaseButton-primary"]:enabled:hover,
[data-testid="stMultiSelect"] [data-tag], [data-testid="stMultiSelect"] [data-tag] button {{ color: {INK["dark"]}; }}
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
ICON = f'<svg xmlns="http://www.w3.org/2000/svg" width="48" height="32" viewBox="0 0 48 32">{_MARK}</svg>'
"""For the browser's tab. A Material icon there would be fetched from a host of fonts."""
LOGO = f'<svg xmlns="http://www.w3.org/2000/svg" width="204" height="32" viewBox="0 0 204 32">{_MARK}{_WORDS}</svg>'


def frame_style() -> None:
    """For every page, once: the phone, and what the dark theme cannot say."""
    st.html(PHONE_STYLE + (DARK_STYLE if is_dark() else ""))


def is_dark() -> bool:
    return bool(st.context.theme.type == "dark")


def themed(figure: Any) -> "go.Figure":
    """A figure in the colours of the page that it is shown on; larger for a projector."""
    from idecode_core.plots.style import DARK, LARGE, LIGHT, repainted

    theme = DARK if is_dark() else LIGHT
    return repainted(figure, theme, LARGE if st.session_state.get(PRESENT) else 1.0)


def chart(figure: Any, *, key: str, alt: str) -> None:
    """A figure, and what it shows for screen readers."""
    st.plotly_chart(themed(figure), key=key, config=CHART, alt=alt)


def show(figure: Any, *, key: str, look_for: str) -> None:
    """A figure, and below it what to look for, which is also its text for screen readers."""
    chart(figure, key=key, alt=look_for)
    st.caption(look_for)
