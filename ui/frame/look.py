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
[class*="st-key-picture"] h2 {{ padding: 0 0 0.25rem; font-size: 1.3rem; text-wrap: pretty; }}
[class*="st-key-picture"] p {{ font-size: 0.875rem; line-height: 1.5; }}
.st-key-judged_now h2 {{ font-size: 1.08rem; }}
.st-key-doors h2 {{ font-size: 1.15rem; padding: 0; }}
.st-key-doors [data-testid="stVerticalBlock"] {{ gap: 0.5rem; }}
.st-key-doors [data-testid="stPageLink"] {{ margin-left: -0.5rem; margin-right: 0.5rem; }}
.st-key-judged_now button img {{ height: 44px; width: 44px; }}
.st-key-verdict_first h3 {{ padding: 0; font-size: 1.05rem; }}
@media (max-width: 1340px) {{ .st-key-verdict_first h3 {{ font-size: 0.95rem; }} .st-key-judged_now button img {{ height: 36px; width: 36px; }} }}
.st-key-draw_steps button {{ min-height: 2rem; padding: 0 0.6rem; }}
.st-key-draws [data-testid="stButtonGroup"] > div {{ flex-wrap: nowrap; overflow-x: auto; padding: 3px; }}
[class*="st-key-picture"] img, .st-key-chosen img {{ image-rendering: pixelated; border-radius: 8px; }}
</style>
"""

PRESENT = "present"
"""Key of the switch for the presenter view, and its name in the link."""
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
  .st-key-device, .st-key-present:not(:has(:checked)) { display: none; }
  [data-testid="stSidebarUserContent"] [data-testid="stVerticalBlock"] { gap: 0.4rem; }
}
</style>
"""

BAR_STYLE = """
<style>
/* The settings stay while one scrolls; the page's menu keeps its corner. */
[data-testid="stMainBlockContainer"]:has(.st-key-bar, .st-key-page_head) { padding: 0.4rem 2rem 4rem; }
[data-testid="stLayoutWrapper"]:has(> .st-key-bar) {
  position: sticky; top: 0; z-index: 999991; background: var(--st-background-color, BACKGROUND); padding: 0.3rem 2.5rem 0.5rem 0;
  border-bottom: 1px solid var(--st-border-color, BORDER); margin-bottom: -0.4rem; }
.st-key-bar h1 { font-size: 1.6rem; padding: 0; white-space: nowrap; line-height: 2.4rem; }
.st-key-bar { flex-wrap: nowrap; }
.st-key-page_head { padding-top: 3rem; }
:is(.st-key-bar_below, .st-key-page_head) h1 { font-size: 1.7rem; padding: 0 0 1.2rem; }
.st-key-bar > :is(:has(> .st-key-bar_n), :has(> .st-key-bar_epsilon), :has(> .st-key-bar_detector)) { min-width: 7rem; flex: 1 1 9rem; }
.st-key-bar > :has(> .st-key-bar_epsilon) { flex-grow: 1.5; }
.st-key-bar [data-testid="stVerticalBlock"] { gap: 0; }
.st-key-bar_detector [data-testid="stMarkdown"] [data-testid="stMarkdownContainer"] { margin-bottom: -0.75rem; }
.st-key-bar [data-testid="stMarkdownContainer"] p { font-size: 0.875rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.st-key-bar label p, .st-key-menu button p { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
@media (max-width: 1340px) {
  .st-key-bar { gap: 1rem; }
  .st-key-verdict_first [data-testid="stButtonGroup"] button:not(:has(img)) { padding: 0 0.5rem; }
}
@media (min-width: 641px) and (max-width: 1000px) {
  .st-key-bar { flex-wrap: wrap; gap: 0 0.6rem; }
  .st-key-bar > :has(h1) { flex: 1 0 100%; }
  .st-key-bar > :is(:has(> .st-key-bar_n), :has(> .st-key-bar_epsilon), :has(> .st-key-bar_detector)) { flex-basis: 7rem; }
  .st-key-bar > :has(> .st-key-bar_detector) { min-width: 9rem; }
  .st-key-bar [data-testid="stMarkdownContainer"] p { font-size: 0.78rem; }
  .st-key-verdict_first [data-testid="stButtonGroup"] button:not(:has(img)) { padding: 0 0.25rem; }
  .st-key-verdict_first [data-testid="stButtonGroup"] button:not(:has(img)) p { font-size: 0.8rem; }
}
@media (min-width: 641px) {
  /* With the sidebar closed, the way to open it again stands in the margin, or the bar would cover it. */
  [data-testid="stApp"]:has(.st-key-bar) [data-testid="stHeader"]:has([data-testid="stExpandSidebarButton"]) {
    z-index: 999992; background: none; pointer-events: none; }
  [data-testid="stApp"]:has(.st-key-bar) [data-testid="stHeader"] button { pointer-events: auto; }
  [data-testid="stApp"]:has(.st-key-bar) [data-testid="stHeaderLogo"] { display: none; }
  [data-testid="stApp"]:has(.st-key-bar) [data-testid="stExpandSidebarButton"] { position: fixed; left: 0.1rem; top: 1rem; }
}
.st-key-verdict_first h2 { padding-top: 0; text-wrap: pretty; }
[data-testid="stMetricLabel"] p { white-space: normal; }
.st-key-bar [data-testid="stNumberInputStepDown"], .st-key-bar [data-testid="stNumberInputStepUp"] { display: none; }
[data-testid="stPopoverBody"]:has(.st-key-menu_cards) { min-width: min(34rem, 92vw); }
.st-key-menu_cards img { border-radius: 6px; image-rendering: pixelated; }
.st-key-menu_cards [data-testid="stCaptionContainer"] p { white-space: normal; font-size: 0.8rem; }
@media (max-width: 640px) {
  [data-testid="stMainBlockContainer"]:has(.st-key-bar, .st-key-page_head) { padding: 0.25rem 1rem 4rem; }
  [data-testid="stLayoutWrapper"]:has(> .st-key-bar) { padding-right: 0; }
  .st-key-bar { gap: 0.6rem; }
  .st-key-page_head { padding-top: 0; }
  .st-key-bar > :has(h1), .st-key-bar_epsilon, .st-key-bar > :has(> .st-key-bar_epsilon), .st-key-experts, .st-key-copy_link {
    position: absolute !important; width: 1px !important; min-width: 0 !important; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .st-key-bar > :is(:has(> .st-key-bar_n), :has(> .st-key-bar_detector)) { min-width: 0; flex: 1 1 6rem; }
  .st-key-bar label p { font-size: 0.75rem; }
  /* The verdict comes before the things to choose. */
  .st-key-verdict_first > [data-testid="stLayoutWrapper"] > [data-testid="stHorizontalBlock"] { flex-direction: column-reverse; }
  [data-testid="stLayoutWrapper"]:has(> .st-key-doors) { order: 1; }
}
</style>
"""
ARRIVED = """
<script>
// PAGE: another text on each page, so that this runs on each.
// Streamlit adds an entry to the browser's history whenever the program writes into the address. Back should go back, once per page.
if (!history.onePerPage) {
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    const here = url && new URL(url, location.href).pathname === location.pathname;
    return here ? history.replaceState(state, title, url) : push(state, title, url);
  };
  history.onePerPage = true;
}
// The names of the pages are lists with headings between them, which Streamlit nests in one list; and on a phone, where they
// are a row to swipe, the one of this page is brought into view.
var tidy = () => {  // not const: this runs again on the next page
  for (const list of document.querySelectorAll("[data-testid=stSidebarNavItems]")) {
    list.setAttribute("role", "presentation");
    for (const part of list.children) part.setAttribute("role", part.tagName === "LI" ? "presentation" : "list");
    for (const part of list.querySelectorAll("[data-testid=stNavSectionHeader]")) part.setAttribute("role", "presentation");
  }
  const here = document.querySelector("[data-testid=stSidebarNavLink][aria-current=page]");
  if (here && innerWidth <= 640) {
    const row = here.closest("[data-testid=stSidebarNav]");
    row.scrollLeft += here.getBoundingClientRect().left - row.getBoundingClientRect().left - 16;
  }
};
for (const wait of [0, 300, 1000, 3000]) setTimeout(tidy, wait);
</script>
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


def frame_style(page: str) -> None:
    """For the page of this title: the phone, what the dark theme cannot say, and what Streamlit's frame lacks."""
    colours = ("#10161D", "#2C3947") if is_dark() else ("#FFFFFF", "#DCE3EA")  # as in .streamlit/config.toml
    bar = BAR_STYLE.replace("BACKGROUND", colours[0]).replace("BORDER", colours[1])
    st.html(PHONE_STYLE + bar + (DARK_STYLE if is_dark() else ""))
    st.html(ARRIVED.replace("PAGE", page), unsafe_allow_javascript=True)


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
