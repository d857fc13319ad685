"""The attacked picture, which a click or a key flicks to the clean one and back, in the same place: the eye sees what moves."""

import streamlit as st

from ui.frame.samples import data_uri

STYLE = """
button { position: relative; display: block; padding: 0; border: none; background: none; cursor: pointer; width: 100%; }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; border-radius: 8px; }
img { display: block; width: 100%; image-rendering: pixelated; border-radius: 8px; }
span { position: absolute; left: 6px; bottom: 6px; padding: 1px 7px; border-radius: 6px; font: 600 12px var(--st-font, sans-serif);
  color: #fff; background: #0c151ecc; }
"""
FLICK = """
export default function ({ data, parentElement }) {
  const button = parentElement.querySelector("button"), picture = button.querySelector("img"), word = button.querySelector("span");
  let clean = false;
  const show = () => {
    picture.src = clean ? data.clean : data.attacked;
    picture.alt = `${data.name}, ${clean ? "clean" : "attacked"}`;
    word.textContent = clean ? "clean" : "attacked: click to flick";
  };
  button.onclick = () => { clean = !clean; show(); };
  show();
}
"""


def flick(attacked: bytes, clean: bytes, width: int, name: str) -> None:
    """Two pictures in one place; nothing is asked of the server."""
    html = f'<button type="button"><img alt="" width="{width}" height="{width}"><span></span></button>'
    component = st.components.v2.component("flick", html=html, css=STYLE, js=FLICK)
    component(
        key="flick",
        data={"attacked": data_uri(attacked), "clean": data_uri(clean), "name": name},
        width=width,
    )
