"""iDECODe Studio: `streamlit run app.py`. Navigation only; each page is a file in pages/."""

import streamlit as st

from ui.frame.cache import pause_garbage_collector
from ui.frame.catalogue import pages
from ui.frame.detectors import show_device
from ui.frame.links import enter
from ui.frame.look import ICON, LOGO, frame_style
from ui.frame.messages import guard
from ui.frame.panels import page_complete
from ui.learn.class_plan import present

st.set_page_config(
    page_icon=ICON,  # before navigation, whose pages' icons the browser would else fetch from another machine for its tab
    layout="wide",
    initial_sidebar_state="collapsed"
    if st.context.is_embedded
    else 240,  # pixels: room for the longest name; in a notebook none
    menu_items={
        "About": "**iDECODe Studio**: out-of-distribution detection with a guarantee (Kaur et al., AAAI 2022)."
    },
)
st.logo(LOGO, size="large")
sections: dict[str, list[st.Page]] = {}
for entry in pages():
    page = st.Page(
        entry.path, title=entry.title, icon=f":material/{entry.icon}:", default=entry.name == "home"
    )
    sections.setdefault(entry.section, []).append(page)
page = st.navigation(sections, expanded=True)
st.set_page_config(page_title="iDECODe Studio" if page.title == "Home" else f"{page.title} · iDECODe Studio")
frame_style(page.title)
with guard():
    enter(page.title)
    present(next(entry.name for entry in pages() if entry.title == page.title))
    page.run()
    show_device()
    page_complete()
    pause_garbage_collector(page.title)
