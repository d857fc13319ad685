"""iDECODe Studio: `streamlit run app.py`. Navigation only; each page is a file in pages/."""

import streamlit as st

from ui.frame.cache import spare_collections
from ui.frame.catalogue import pages
from ui.frame.detectors import forget_place, show_device
from ui.frame.links import enter
from ui.frame.look import ICON, LOGO, frame_style
from ui.frame.messages import guard
from ui.frame.panels import page_complete

st.set_page_config(
    page_title="iDECODe Studio",
    page_icon=ICON,
    layout="wide",
    menu_items={
        "About": "**iDECODe Studio**: out-of-distribution detection with a guarantee (Kaur et al., AAAI 2022)."
    },
)
st.logo(LOGO, size="large")
frame_style()
sections: dict[str, list[st.Page]] = {}
for entry in pages():
    page = st.Page(
        entry.path, title=entry.title, icon=f":material/{entry.icon}:", default=entry.name == "home"
    )
    sections.setdefault(entry.section, []).append(page)
page = st.navigation(sections, expanded=True)
with guard():
    enter(page.title)
    forget_place()
    page.run()
    show_device()
    page_complete()
    spare_collections(page.title)
