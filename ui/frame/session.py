"""The session before the visitor: its inputs are what Inspect shows, and what is tagged, noted, pinned or set here is saved to it.

Sessions lie on the machine that the app runs on. They are shown to who has the token of `studio.open`, or who sits at that machine.
"""

import os
from contextlib import suppress
from dataclasses import replace
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.conformal.settings import Settings as JudgeSettings
from idecode_core.errors import IdecodeError
from idecode_core.session import Session, recent
from idecode_core.session.store import LONGEST_TITLE
from idecode_core.studio import TOKEN_VARIABLE
from ui.frame.links import link_value, put_in_link
from ui.frame.messages import escape, refused
from ui.frame.panels import JUDGED, panel, rerun_on, rerun_panels

if TYPE_CHECKING:
    from collections.abc import Callable

    from ui.frame.samples import Modality, Sample

TAGS = ("wrong verdict", "check")
LOCAL = ("localhost", "127.0.0.1", "::1")


def take_token() -> None:
    """Keep the token of the link for this visit, and take it out of the address, which people copy."""
    if given := link_value("token"):
        st.session_state["token"] = given
        put_in_link("token", None)


@st.cache_resource(show_spinner=False)
def _browsers() -> set[bytes]:
    """Those that have shown the token: a page that is loaded again has it no more."""
    return set()


def _browser() -> bytes:
    """What nobody but this browser knows: Streamlit's cookie, without its mask, which is another one at each visit."""
    with suppress(ValueError, ZeroDivisionError):
        _, mask, masked, _ = st.context.cookies.get("_streamlit_xsrf", "").split("|")
        key = bytes.fromhex(mask)
        return bytes(code ^ key[i % len(key)] for i, code in enumerate(bytes.fromhex(masked)))
    return b""


def at_this_machine() -> bool:
    """Whether the visitor sits at the machine that runs this: nobody else sees its sessions or writes to its disk."""
    if token := os.environ.get(TOKEN_VARIABLE):
        take_token()
        browser = _browser()
        if compare_digest(str(st.session_state.get("token", "")).encode(), token.encode()):
            _browsers().add(browser)
            return True
        return len(browser) >= 16 and browser in _browsers()
    headers = {str(name).lower(): str(value) for name, value in st.context.headers.items()}
    forwarded = any(name in headers for name in ("x-forwarded-for", "x-real-ip", "forwarded"))
    host = headers.get("host", LOCAL[0]).rpartition(":")[0] or headers.get("host", LOCAL[0])
    return st.get_option("server.address") in LOCAL and not forwarded and host.strip("[]") in LOCAL


def opened() -> Session | None:
    """The session of this visit."""
    return st.session_state.get("session_open")


def enter() -> None:
    """Before the settings are drawn: open what the link names, and take its detector and settings, once."""
    take_token()
    session, name = opened(), link_value("session")
    if session is not None and name in (None, session.name):
        put_in_link("session", session.name)
        return
    if name is None:
        return
    st.session_state.pop("session_open", None)
    try:
        if not at_this_machine():
            raise IdecodeError(
                "This link asks for a session, and sessions are only shown on the machine that they are kept on: open it by the "
                "link that studio.open gives."
            )
        _take(session := Session.open(name))
        put_in_link("session", session.name)
    except IdecodeError as error:
        put_in_link("session", None)
        st.session_state["session_trouble"] = str(error)


def _take(session: Session) -> None:
    from ui.frame.cache import get_configs

    folder = session.detector.folder
    if not folder:
        folder = _session_detector(session)
    if folder not in get_configs():
        raise IdecodeError(
            f"The session {session.name} was made with the detector {session.detector.name}, which is not here. Fetch it, then "
            "open the session again."
        )
    state, settings = st.session_state, session.settings
    state["detector"], state["epsilon"], state["seed"] = folder, settings.epsilon, settings.seed
    state["aggregate"], state["p"] = settings.aggregate, "smoothed" if settings.smoothed else "conservative"
    if settings.n is not None:
        state["n"] = settings.n
    state["session_open"] = session
    for key in ("session_samples", "row_for", "row", "source", "sound_source"):
        state.pop(key, None)


def _session_detector(session: Session) -> str:
    """A detector that lies in the session joins those of this visit."""
    from idecode_core.folder.settings import read_settings
    from ui.frame.cache import add_detector

    config = read_settings(session.folder / "detector")
    return add_detector(session.load_detector(), "", config).config.folder.name


def in_sidebar() -> None:
    """The session's name, and what could not be opened."""
    if trouble := st.session_state.pop("session_trouble", None):
        st.warning(escape(trouble), icon=":material/folder_off:")
    if (session := opened()) is not None:
        words = f":material/folder_open: Session **{escape(session.title)}** · {len(session):,} input{'s' * (len(session) != 1)}"
        st.sidebar.caption(words)
        with st.sidebar.popover("Rename", icon=":material/edit:", type="tertiary"):
            st.session_state["session_title"] = session.title
            st.text_input(
                "Name of the session",
                key="session_title",
                max_chars=LONGEST_TITLE,
                on_change=_rename,
                args=(session,),
            )
        epsilon = float(st.session_state["epsilon"])
        if epsilon != session.settings.epsilon:
            session.settings = replace(session.settings, epsilon=epsilon)
            save(session)


def _rename(session: Session) -> None:
    try:
        session.rename(st.session_state["session_title"])
        session.save()
    except IdecodeError as error:
        st.session_state["session_trouble"] = str(error)


def save(session: Session) -> None:
    """Write it; what cannot be written is a sentence, and stays here."""
    try:
        session.save()
    except IdecodeError as error:
        st.warning(escape(str(error)), icon=":material/sync_problem:")


def sources() -> "dict[str, Callable[[Any, Modality], list[Sample]]]":
    """Where else the inputs of Inspect come from: the session, if there is one."""
    return {"Session": from_session} if opened() is not None else {}


def from_session(_: object, modality: "Modality") -> "list[Sample]":
    """Its inputs as they are now, decoded once for this visit; those that have changed or gone cost a sentence each."""
    from ui.frame.samples import decoded_sample

    session = opened()
    if session is None or session.detector.modality != modality.name:
        st.caption("The session's inputs are of another kind than this detector takes.")
        return []
    kept = st.session_state.get("session_samples")
    if kept is None:
        inputs, sentences = session.samples()
        samples = [
            decoded_sample(modality, item.name, session.read(item), decoded) for item, decoded in inputs
        ]
        kept = st.session_state["session_samples"] = (samples, sentences)
    refused(kept[1])
    st.caption(f"{len(kept[0]):,} {modality.plural} of the session {escape(session.title)}.")
    return list(kept[0])


@panel("tags", on=(*JUDGED, "row", "tags"))
def tag_row(batch: Any) -> None:
    """Tags and a note on the input that is looked at, saved at once; nothing without a session."""
    session = opened()
    if session is None:
        return
    _keep_verdicts(session, batch)
    sample = batch.samples[batch.row]
    key = sample.content_hash
    if key not in {item.content_hash for item in session.inputs}:
        return
    current = session.tags.get(key, ())
    options = list(dict.fromkeys((*TAGS, *(tag for tags in session.tags.values() for tag in tags), *current)))
    st.session_state[f"tags_{key}"] = list(current)
    st.session_state[f"note_{key}"] = session.notes.get(key, "")
    with st.container(horizontal=True, vertical_alignment="bottom", key="tag_row"):
        st.pills(
            f"Tags of {escape(sample.name)}",
            options,
            selection_mode="multi",
            key=f"tags_{key}",
            on_change=_tag,
            args=(session, key),
        )
        st.text_input(
            "Own words", key=f"own_{key}", max_chars=60, width=180, on_change=_new_tag, args=(session, key)
        )
        st.text_input("Note", key=f"note_{key}", max_chars=5000, on_change=_note, args=(session, key))


def _tag(session: Session, key: str) -> None:
    session.tag(key, *st.session_state[f"tags_{key}"])
    save(session)
    rerun_on("tags")


def _new_tag(session: Session, key: str) -> None:
    words = st.session_state[f"own_{key}"]
    st.session_state[f"own_{key}"] = ""
    if words.strip():
        session.tag(key, *session.tags.get(key, ()), words)
        save(session)
        rerun_on("tags")


def _note(session: Session, key: str) -> None:
    session.note(key, st.session_state[f"note_{key}"])
    save(session)


def judge_settings() -> JudgeSettings:
    from ui.frame.settings import current

    now = current()
    return JudgeSettings(now.n, now.epsilon, None, now.aggregate, now.seed, now.smoothed)


def _keep_verdicts(session: Session, batch: Any) -> None:
    """What the page shows now, in the session, if it is of the session's inputs under its detector."""
    settings = judge_settings()
    if settings == session.settings or st.session_state["detector"] != (
        session.detector.folder or session.detector.name
    ):
        return
    if [sample.content_hash for sample in batch.samples] == [item.content_hash for item in session.inputs]:
        session.judged(settings, batch.vectors[:, : settings.n], batch.judgement.p_values)
        save(session)
    elif replace(settings, epsilon=session.settings.epsilon) == session.settings:
        session.settings = settings
        save(session)


def keep_button(batch: Any) -> None:
    """Begin a session with what is on the page; nothing where one is open, or the visitor sits at another machine."""
    if opened() is not None or not at_this_machine():
        return
    from idecode_core.session.making import free_name

    with st.popover("Keep as a session", icon=":material/create_new_folder:"):
        st.caption(
            "These files, their verdicts and your settings, in a folder that a notebook can open too. Each file can then have tags "
            "and a note."
        )
        folder = batch.config.folder.name
        name = st.text_input(
            "Name of the session",
            free_name(folder),
            key=f"session_name_{folder}",
            max_chars=LONGEST_TITLE,
        )
        st.button("Keep", key="keep_session", type="primary", on_click=_begin, args=(name, batch))


def _begin(name: str, batch: Any) -> None:
    from idecode_core.session.making import session_of_files

    try:
        settings = judge_settings()
        vectors, p_values = batch.vectors[:, : settings.n], batch.judgement.p_values
        session = session_of_files(
            batch.detector, settings, batch.samples, vectors, p_values, name=name.strip()
        )
        for run in st.session_state.get("pins", ()):
            session.pin(run.title, run.detector, run.settings, run.numbers)
        st.session_state["session_open"] = session.save()
        st.session_state["session_samples"] = (list(batch.samples), [])
    except IdecodeError as error:
        st.session_state["session_trouble"] = str(error)
    rerun_panels()  # the whole page: the name, or what was wrong with it, stands outside of this panel


def recent_sessions() -> None:
    """Sessions to go on with, each a click away; nothing where there are none."""
    from ui.frame.catalogue import link

    sessions = recent() if at_this_machine() else []
    if not sessions:
        return
    st.markdown("### Go on with a session")
    for session in sessions:
        if session.sentence:
            st.caption(escape(session.sentence))
            continue
        words = f"{session.title} · {session.inputs:,} inputs under {session.detector} · {session.changed:%d %B, %H:%M}"
        token = {"token": st.session_state["token"]} if st.session_state.get("token") else {}
        link("inspect", escape(words), "folder_open", {"session": session.name, **token})
