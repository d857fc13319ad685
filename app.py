"""iDECODe Studio: `streamlit run app.py`. Navigation only; each page is a file in pages/."""

from pathlib import Path

import streamlit as st

from ui.messages import guard
from ui.settings import show_device

PAGES = {
    "": [("home", "Home", "home")],
    "Use": [
        ("inspect", "Inspect", "search"),
        ("many_and_streams", "Many and streams", "stacks"),
        ("calibrate", "Calibrate", "tune"),
    ],
    "Trust": [
        ("evaluate", "Evaluate", "monitoring"),
        ("guarantee", "Guarantee", "verified"),
    ],
    "Learn": [
        ("how_it_works", "How it works", "school"),
        ("break_it", "Break it", "healing"),
    ],
}

st.set_page_config(
    page_title="iDECODe Studio",
    page_icon=":material/troubleshoot:",
    layout="wide",
    menu_items={
        "About": "**iDECODe Studio**: out-of-distribution detection with a guarantee (Kaur et al., AAAI 2022)."
    },
)
here = Path(__file__).parent
sections = {
    section: [
        st.Page(here / "pages" / f"{name}.py", title=title, icon=f":material/{icon}:", default=name == "home")
        for name, title, icon in pages
        if (here / "pages" / f"{name}.py").exists()
    ]
    for section, pages in PAGES.items()
}
page = st.navigation({section: pages for section, pages in sections.items() if pages})
with guard():
    page.run()
    show_device()
