"""What a link carries besides widgets that are bound to it, and what survives changing pages.

Streamlit forgets a page's widgets, and their part of the URL, when another page is opened. So the values are kept here
and put back on the first run of the next page that has the widget.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

import streamlit as st
from streamlit.errors import StreamlitAPIException

from ui.frame.messages import escape

LONGEST = 60  # characters of a link's value in a notice


def link_value(name: str) -> str | None:
    """What the URL says, or None."""
    value = st.query_params.get(name)
    return str(value) if value else None


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


def carry_over(keys: Iterable[str], defaults: Mapping[str, object] = MappingProxyType({})) -> None:
    """Before widgets are drawn: give those of a newly opened page the values they had; the URL goes first.

    Of the keys that have a default here, others than the default go into the URL as well.
    """
    kept = st.session_state.get("kept", {})
    for key in keys:
        value, visit = kept.get(key, (None, None))
        if value is not None and visit != st.session_state.get("visit") and key not in st.query_params:
            st.session_state[key] = value
            if key in defaults and value != defaults[key]:
                # Streamlit puts it into the URL by itself, but the next `put_in_link` would write a link without it.
                with suppress(StreamlitAPIException):  # bound already
                    st.query_params[key] = f"{value:g}" if isinstance(value, float) else str(value)


def keep(keys: Iterable[str]) -> None:
    """After widgets are drawn: remember what they say."""
    visit = st.session_state.get("visit")
    now = {key: (st.session_state[key], visit) for key in keys}
    st.session_state["kept"] = {**st.session_state.get("kept", {}), **now}


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


def differs(text: str, shown: object) -> bool:
    """Whether a link's words mean something else than what is shown."""
    try:
        number = float(text)
    except ValueError:
        return text != str(shown)
    return not isinstance(shown, (int, float)) or abs(number - shown) > 1e-6 * abs(number)


def request(name: str, text: str, why: str, shown: object) -> str:
    """The sentence on a link that could not be followed."""
    value = f"{shown:g}" if isinstance(shown, float) else str(shown)
    return f"The link asks for {name} = {escape(text[:LONGEST])}, {why}; shown is **{escape(value)}**."


def say_unmet(
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
