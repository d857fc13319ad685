"""The detectors that the bar offers: their order, what each knows, how good it is and what it is for, and the device it runs on."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

import streamlit as st

from idecode_core.errors import DataError, IdecodeError
from idecode_core.folder.settings import FolderSettings
from idecode_core.image.sets import dataset_and_class, load_images
from ui.frame.cache import STORED_FILES, by_files, get_stored, made_here
from ui.frame.links import put_in_link
from ui.frame.messages import escape
from ui.frame.samples import data_uri, smaller

if TYPE_CHECKING:
    from idecode_core.quality.strength import Strength

DEFAULT_DETECTOR = "fashion-rotations"
"""The one that comes with the installed package, and that the lessons use."""
FIRST = ("cifar10-pretrained", DEFAULT_DETECTOR)
"""The ones to begin with: the best for photographs (the best mean over the OOD sets of RESULTS.md), else the one that comes with
the installed package."""
GOOD_FOR = {
    "cifar10-pretrained": "began with ImageNet's weights: the best for photographs",
    "cifar10-merged": "two networks as one, the best from scratch",
    "cifar10-joint": "two questions to one network, nearly as good and quicker",
    "cifar10-rotations": "asks by how much it was rotated, as in the paper",
    "cifar10-turn-distance": "the same, and how far it lies from what was learned: the best without labels",
    "cifar10-projective": "asks by what it was bent, as in the paper",
    "cifar10-invariance": "asks whether the answer stays the same",
    "cifar10-densenet": "a larger network",
    "cifar10-horses": "one kind only: all but horses is strange to it",
    "fashion-rotations": "small and quick, to learn with",
    "spoken-digits": "speak a digit, or anything else",
}
"""What a shipped detector is for, or what sets it apart from its neighbours."""
PLACE = {"cifar10": 5, "fashion": 7, "digits": 0}  # class of the picture on a card: a dog, a shoe
OPEN = "menu"


def in_order(configs: Mapping[str, FolderSettings]) -> list[str]:
    """Names of detectors as they are offered: the ones to begin with, then those of pictures, then those of sounds; in both those
    that come with the project first, as `GOOD_FOR` has them."""
    known = {name: place for place, name in enumerate(GOOD_FOR)}

    def place(name: str) -> tuple[object, ...]:
        return name not in FIRST, configs[name].takes_sounds, known.get(name, len(known)), name

    return sorted(configs, key=place)


@st.fragment(key="chooser")
def choose_detector(configs: Mapping[str, FolderSettings], offered: list[str]) -> None:
    """The chosen one, and a click away all of them, pictures and sounds apart."""
    chosen = st.session_state["detector"]
    put_in_link("detector", None if chosen == offered[0] else chosen)
    st.markdown(
        f":small[{costs(configs[chosen]) or 'Detector'}]",
        help=escape(f"Knows {configs[chosen].summary or 'what its card says'}."),
    )
    with st.popover(
        escape(chosen), key=OPEN, on_change="rerun", width="stretch", icon=icon(configs[chosen])
    ) as menu:
        # The stored scores of all detectors are read when somebody wants to know.
        st.session_state["menu_was_open"] = bool(menu.open) or st.session_state.get("menu_was_open", False)
        with st.container(key="menu_cards", gap="xsmall"):
            for title, sounds in (("Pictures", False), ("Sounds", True)):
                names = [name for name in offered if configs[name].takes_sounds == sounds]
                if names:
                    st.markdown(f"### {title}")
                for name in names:
                    with st.container(
                        horizontal=True, vertical_alignment="center", gap="small", key=f"card_{name}"
                    ):
                        if thumbnail := picture_of(configs[name].dataset):
                            st.image(thumbnail, width=40, alt=escape(name))
                        else:
                            st.markdown(icon(configs[name]))
                        with st.container(gap=None):
                            st.button(
                                f"**{escape(name)}**",
                                key=f"menu_{name}",
                                type="tertiary",
                                disabled=name == chosen,
                                on_click=use_detector,
                                args=(name,),
                            )
                            st.caption(escape(one_line(configs[name], st.session_state["menu_was_open"])))
        st.caption(
            "AUROC in percent, the mean over the stored OOD sets: how often something strange scores higher than something that "
            "belongs. 50 is guessing, 100 never errs; below 80 is weak, and many strange inputs pass."
        )


def icon(config: FolderSettings) -> str:
    return f":material/{'graphic_eq' if config.takes_sounds else 'image'}:"


def costs(config: FolderSettings) -> str:
    """Of a detector that a visitor has calibrated: what is lost, where more than half is."""
    made = made_here(config)
    if made is None or made.lost is None or made.lost.after >= made.lost.before / 2:
        return ""
    return f"Catches {made.lost.after:.0%}, parent {made.lost.before:.0%}"


def one_line(config: FolderSettings, read: bool) -> str:
    """What a detector knows, how good it is if that is to be read, and what it is for."""
    strength = strength_of(config) if read else None
    good = str(strength) if strength else "no test scores are stored" if read else ""
    words = (config.summary or "see its card", good, GOOD_FOR.get(config.folder.name, ""))
    return " · ".join(word for word in words if word)


@st.cache_data(show_spinner=False, hash_funcs=by_files(*STORED_FILES))
def strength_of(config: FolderSettings) -> "Strength | None":
    """Mean AUROC over the stored OOD sets; None when no scores are stored."""
    from idecode_core.quality.strength import strength

    try:
        stored = get_stored(config)
        return strength(stored) if stored is not None and stored.ood_sets else None
    except IdecodeError:
        return None


@st.cache_resource(show_spinner=False, max_entries=64)
def picture_of(dataset: str) -> str:
    """A small picture of what belongs, where the project has one."""
    name, only = dataset_and_class(dataset)
    try:
        images = load_images(f"{name}-sample")
        label = PLACE.get(name, 0) if only is None else only
        return data_uri(smaller(images.x[list(images.y).index(label)], 64))
    except (DataError, ValueError):
        return ""


def use_detector(name: str) -> None:
    """For callbacks: this detector from now on, on every page."""
    st.session_state["detector"] = name
    st.session_state[OPEN] = False
    st.rerun()


def show_device() -> None:
    """At the foot of the sidebar, after the page: the device that detectors run on, once torch has been needed."""
    if "torch" in sys.modules:
        from idecode_core.device import choose_device

        names = {"cuda": "graphics card (cuda)", "mps": "graphics processor (mps)"}
        with st.sidebar.container(key="device"):
            st.caption(f"Runs on the {names.get(choose_device().type, 'processor (cpu)')}")


def wait_for_input() -> NoReturn:
    """For a page that has nothing to judge yet: it ends here, with what the frame would show after it."""
    show_device()
    st.stop()
