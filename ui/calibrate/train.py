"""A detector of a visitor's own files: plan and time first, progress with time left, the result with its weaknesses, use it now.

The training is a process of its own (`idecode_core.training.background`); this page only asks how far it is.
"""

import os
from pathlib import Path

import streamlit as st

from idecode_core.files.archives import zip_folder
from idecode_core.folder.settings import checkpoint_root
from idecode_core.training import background
from idecode_core.training.background import State
from ui.calibrate.bring import Brought
from ui.calibrate.use import ask_name, where_to_go
from ui.frame.links import link_value, put_in_link
from ui.frame.messages import escape, guard
from ui.frame.session import at_this_machine

ALLOWED = background.ALLOWED
TOKEN = "training"
"""In the link: who may see, stop and use a training on a server that is shared."""
WORDS = {
    "reading": "Reading your files",
    "fitting": "Fitting",
    "training": "Training",
    "naming classes": "Naming classes",
    "calibrating": "Calibrating",
}
OFF = (
    "Training is off on this server, because others use it too; whoever starts it may allow it (`idecode app --train`). On your own "
    "machine `idecode train FOLDER` does it, or this page."
)


def may_train() -> bool:
    """On one's own machine; on a server that others reach only where that was allowed at the start."""
    told = os.environ.get(ALLOWED)
    return told == "1" if told in ("0", "1") else at_this_machine()


def is_mine() -> bool:
    return at_this_machine() or background.has_token(link_value(TOKEN) or "")


def watch() -> bool:
    """The training that runs or has ended, if it is this visitor's. Whether there is one that must end first."""
    state = background.look() if may_train() else None
    if state is None:
        return False
    if not is_mine():
        return state.is_running
    shown = st.fragment(_follow, key="training", run_every=1.0 if state.is_running else None)
    with st.container(border=True, key="training_box"):
        shown(state.phase)
    return state.is_running


def _follow(drawn_for: str) -> None:
    """Every second while it runs; the whole page when something ends or begins."""
    with guard():
        state = background.look()
        if state is None or state.phase != drawn_for:
            st.rerun()
        SHOW[state.phase](state)


def ask(belongs: Brought, outside: Brought, *, busy: bool) -> None:
    """The name, what belongs, and the button that has a training planned."""
    name, words, missing = ask_name("mine", "train")
    if busy:
        missing = "A training runs, and there is one at a time: wait until it is done."
    asked = st.button(
        "Plan it",
        type="primary",
        icon=":material/list_alt:",
        key="train_plan",
        disabled=bool(missing),
        help="Reads the files, chooses a model and says how long it takes. Nothing is trained before you say so.",
    )
    if asked:
        job = {
            "source": belongs.source("files"),
            "out": name,
            "audio": belongs.modality.name == "audio",
            "ood": [outside.source("other-files")] if len(outside) else [],
            "summary": words,
        }
        put_in_link(TOKEN, background.begin(job))
        st.rerun()
    where = (
        ""
        if at_this_machine()
        else " The new detector is then in this server's list, for everyone who uses it."
    )
    st.caption(
        missing
        or f"A part of your {belongs.modality.plural} is kept back to calibrate with and to test with, so that the result can be "
        f"trusted. A few hundred make a good start, 40 are the least.{where}"
    )


def _reading(state: State) -> None:
    st.progress(state.share, f"**{escape(state.name)}**: reading your files, to plan with ...")
    _stop_button("Cancel")


def _planned(state: State) -> None:
    st.markdown(f"## The plan for {escape(state.name)}")
    st.markdown("\n".join(f"- {escape(sentence.strip())}" for sentence in state.sentences))
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Train", type="primary", icon=":material/play_arrow:", key="train_go"):
            background.say("go")
            st.session_state["training_told"] = True
        _stop_button("Discard")
    if st.session_state.get("training_told"):
        st.caption("It begins ...")


def _working(state: State) -> None:
    from idecode_core.training.plan import in_words

    st.session_state.pop("training_told", None)
    what = WORDS.get(state.what, f"Testing with {state.what}" if state.what else "It begins")
    left = "" if state.left is None else f", {in_words(state.left)} left"
    st.progress(min(state.share, 1.0), f"**{escape(state.name)}** · {escape(what)}{left}")
    with st.container(horizontal=True, vertical_alignment="center"):
        _stop_button("Stop")
        st.caption(
            "It goes on when you reload or close this page, or look at others. Stopped, it keeps what is done."
        )


def _stop_button(label: str) -> None:
    if st.button(label, icon=":material/stop:", key="train_stop"):
        background.say("stop")
        st.caption("It ends ...")


def _stopped(state: State) -> None:
    st.markdown(
        f"**{escape(state.name)}: stopped.** What was done is kept: with the same files and name it goes on where it was."
    )
    _close_button()


def _failed(state: State) -> None:
    st.error(f"**{escape(state.name)} was not made.** {escape(state.error)}", icon=":material/error:")
    _close_button()


def _done(state: State) -> None:
    result, folder = state.result, Path(str(state.result["detector"]))
    listed = folder.resolve().parent == checkpoint_root().resolve()
    grade(state.name, result)
    table(result)
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.session_state.get("detector") == folder.name:
            st.markdown(":material/check_circle: In use on every page.")
            where_to_go(folder.name)
        elif listed and st.button(
            "Use it now",
            type="primary",
            icon=":material/play_arrow:",
            key="train_use",
            help="On every page. It is in the list of detectors from now on.",
        ):
            st.session_state["detector"] = folder.name
            st.rerun()
        if (folder / "report.html").is_file():
            st.download_button(
                "Report", lambda: (folder / "report.html").read_bytes(), file_name=f"{state.name}.html", mime="text/html",
                key="train_report", icon=":material/description:", on_click="ignore", help="One page that works offline",
            )  # fmt: skip
            st.download_button(
                "Download", lambda: zip_folder(folder, folder.name), file_name=f"{state.name}.zip", mime="application/zip",
                key="train_download", icon=":material/download:", on_click="ignore",
                help="The detector's folder, with its card and its report",
            )  # fmt: skip
        _close_button()
    with st.expander("Its card", icon=":material/badge:"):
        st.code((folder / "card.md").read_text(encoding="utf-8"), language="markdown", wrap_lines=True)


def _close_button() -> None:
    if st.button("Close", key="train_close", type="tertiary", icon=":material/close:"):
        background.forget()
        st.rerun()


SHOW = {
    "reading": _reading,
    "planned": _planned,
    "working": _working,
    "stopped": _stopped,
    "failed": _failed,
    "done": _done,
}


def grade(name: str, result: dict[str, object]) -> None:
    """Ready, weak or failed: in this order of honesty the last word that is true."""
    weak = [str(sentence) for sentence in result.get("weak", ())]  # type: ignore[attr-defined]
    if result.get("failed"):
        st.markdown(f"## :orange[:material/dangerous: {escape(name)}: failed]")
        st.error(
            "It tells your files from nothing that it was tried on. Do not rely on it.",
            icon=":material/dangerous:",
        )
    elif weak:
        st.markdown(f"## :orange[:material/trending_down: {escape(name)}: ready, but weak]")
    else:
        st.markdown(f"## :blue[:material/check_circle: {escape(name)}: ready]")
    if weak:
        st.warning("\n".join(f"- {escape(sentence)}" for sentence in weak), icon=":material/trending_down:")


def table(result: dict[str, object]) -> None:
    """How it did on the files that were kept back."""
    rate, against = result["false_detections"], result["against"]
    assert isinstance(rate, dict)
    assert isinstance(against, list)
    rows = [
        f"| {escape(row['label'])} | {100 * row['auroc']:.1f} | {100 * row['interval'][0]:.1f} to {100 * row['interval'][1]:.1f} "
        f"| {row['detected']:.0%} | {row['points']:,} |"
        for row in against
    ]
    st.markdown(
        f"Of your test files **{rate['rate']:.1%}** are flagged at epsilon = {rate['epsilon']:g}, where chance explains "
        f"{rate['low']:.0%} to {rate['high']:.0%}; and of what does not belong:\n\n"
        f"| set | AUROC in % | 95 % interval | flagged | files |\n|---|---:|---:|---:|---:|\n"
        + "\n".join(rows)
    )
