"""What a link carries besides widgets that are bound to it.

One of a few, side by side: words, of which one is always chosen, or bundled samples.
"""

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

from ui.frame.messages import escape

LINKED: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
"""For widgets: the value is in the URL under the widget's key, and stays while another view or page is shown."""
LONGEST = 60  # characters of a link's value in a notice


def link_value(name: str) -> str | None:
    """What the URL says, or None."""
    value = st.query_params.get(name)
    return str(value) if value else None


def number_in(text: object, low: float, high: float) -> float | None:
    """A number of a link or of an entry, with as many digits as a link carries; None when it is none or lies outside."""
    try:
        number = float(str(text))
    except ValueError:
        return None
    return float(f"{number:g}") if low <= number <= high else None


def put_in_link(name: str, value: str | None) -> None:
    """Keep the URL in step; writes only what changed, because each write is a message to the browser."""
    if value is None:
        st.query_params.pop(name, None)
    elif st.query_params.get(name) != value:
        st.query_params[name] = value


def enter(page: str) -> None:
    """Count the visits to pages; called on every run with the page that is about to run."""
    if st.session_state.get("page") != page:
        st.session_state["page"] = page
        st.session_state["visit"] = st.session_state.get("visit", 0) + 1


def asked(place: str, keys: Iterable[str]) -> dict[str, str]:
    """What the link of this visit says of these keys, when the place is drawn for the first time; later nothing.

    Call it before the widgets are drawn: Streamlit takes out of the URL what it cannot use.
    """
    read = st.session_state.setdefault("links_read", {})
    visit = st.session_state.get("visit")
    if read.get(place, "never") == visit:
        return {}
    read[place] = visit
    return {key: value for key in keys if (value := link_value(key)) is not None}


def keep(place: str, keys: Iterable[str]) -> None:
    """Remember what these widgets show where the URL says it, for `restore`; call it when they are drawn."""
    state = st.session_state
    state[f"{place}_kept"] = {
        key: (state[key], text) for key in keys if key in state and (text := link_value(key)) is not None
    }


def restore(place: str) -> None:
    """Set again what these widgets showed on the page before, in the state and in the URL; call it before they are drawn.

    Streamlit's `persist_state` begins with the second run of a page: what a link set would be gone when the next thing that
    happens is a change of pages. What was moved since is left to Streamlit.
    """
    for key, (value, text) in st.session_state.get(f"{place}_kept", {}).items():
        if link_value(key) is None and st.session_state.get(key, value) == value:
            st.session_state[key] = value
            put_in_link(key, text)


def differs(text: str, shown: object) -> bool:
    """Whether a link's words mean something else than what is shown."""
    if text == str(shown):
        return False
    try:
        number = float(text)
    except ValueError:
        return True
    return not isinstance(shown, (int, float)) or not math.isclose(number, shown, rel_tol=1e-6)


def request(name: str, text: str, why: str, shown: object) -> str:
    """The sentence on a link that could not be followed."""
    value = f"{shown:g}" if isinstance(shown, float) else str(shown)
    return f"The link asks for {name} = {escape(text[:LONGEST])}, {why}; shown is **{escape(value)}**."


def explain_unmet_link(
    place: str,
    wanted: Mapping[str, str],
    shown: Mapping[str, object],
    why: Mapping[str, str],
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """A sentence for each thing that a link asks for and that is not what is shown; `names` is what a notice calls them."""
    sentences = [
        request(names.get(key, key), text, why[key], shown[key])
        for key, text in wanted.items()
        if differs(text, shown[key])
    ]
    notice(place, sentences, tuple(shown.values()))


def say_not_carried(address: str) -> None:
    """Of a link to a visitor's own file."""
    st.info(
        "This link was made with somebody's own file, which a link cannot carry. Drop the same file here to see the same "
        f"view; its fingerprint begins with {escape(address.removeprefix('file-')[:12])}."
    )


COPY = """
<style>
button { display: inline-flex; align-items: center; height: 2.5rem; padding: 0 .7rem; font: inherit; font-size: .9rem; cursor: pointer;
  color: inherit; white-space: nowrap; background: none; border: 1px solid var(--st-border-color); border-radius: .5rem; }
button:hover, button:focus-visible { color: var(--st-primary-color); border-color: var(--st-primary-color); }
</style>
<button title="The address of this page in this state">Copy link</button>
"""
COPYING = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  button.onclick = async () => {
    try { await navigator.clipboard.writeText(location.href); }
    catch {  // a page that is not served over https may not use the clipboard
      const field = document.body.appendChild(document.createElement("textarea"));
      field.value = location.href; field.select(); document.execCommand("copy"); field.remove();
    }
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy link"), 1500);
  };
}
"""


def copy_link() -> None:
    """A button that takes the page's address, with the state in it, to the clipboard."""
    st.components.v2.component("copy_link", html=COPY, js=COPYING)(key="copy_link", width="content")


def notice(place: str, sentences: list[str], shown: object) -> None:
    """Show these sentences, and again on every run of this visit until what is `shown` changes."""
    kept = st.session_state.setdefault("link_notices", {})
    state = (st.session_state.get("visit"), shown)
    if sentences:
        kept[place] = (state, sentences)
    if place in kept and kept[place][0] == state:
        st.warning("  \n".join(kept[place][1]), icon=":material/link_off:")
    else:
        kept.pop(place, None)


def one_of(label: str, options: Iterable[Any], key: str, **more: Any) -> Any:
    """At first the first, and it is in the link. The label is for screen readers; `more` are settings of `st.segmented_control`, also in place of these."""
    options = list(options)
    settings = {"default": options[0], "label_visibility": "collapsed", **LINKED, **more}
    return st.segmented_control(label, options, required=True, key=key, **settings)


def choose_sample(
    key: str, title: str, labels: Mapping[str, str], address: str, chosen: str, *, reset: str = ""
) -> None:
    """Bundled samples to click on, if there are any; st.session_state[chosen] then holds the address, and `reset` None."""
    if not labels:
        return

    def take() -> None:
        # A click on the chosen one would unselect it; the page keeps it.
        if clicked := st.session_state[key]:
            st.session_state[chosen] = clicked
            if reset:
                st.session_state[reset] = None

    st.session_state[key] = address if address in labels else None
    st.pills(title, list(labels), format_func=labels.__getitem__, key=key, on_change=take, wrap=True)
