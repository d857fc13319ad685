"""What the visitor asks for: a victim, an attack and its strength; each is in the link."""

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from idecode_core.attacks import ATTACKS, AttackKind, Victim
from idecode_core.folder.settings import FolderSettings
from ui.attack.picture import DATASET, known_label
from ui.frame import links
from ui.frame.cache import by_files, get_configs, get_detector, session_detectors
from ui.frame.links import LINKED, asked, one_of
from ui.frame.messages import escape
from ui.frame.samples import Sample

FIRST_VICTIM = "cifar10-invariance"
FACTORS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
"""Strengths of the slider as multiples of the paper's."""
AS_THE_VICTIM_SAYS = "what the victim says"


@dataclass(frozen=True, eq=False)
class AttackChoice:
    """The choices of the moment."""

    victim: Victim
    config: FolderSettings
    """Of the folder that the victim comes from."""
    kind: AttackKind
    strength: float
    strengths: tuple[float, ...]
    """All that the slider has."""


def victim_configs() -> dict[str, FolderSettings]:
    """The detectors whose networks name classes of pictures, without those of this session: their networks are here already."""
    configs = get_configs()
    return {
        name: configs[name]
        for name in sorted(configs, key=lambda name: (name != FIRST_VICTIM, name))
        if configs[name].scorer.get("kind") == "image"
        and configs[name].classes
        and name not in session_detectors()
    }


@st.cache_resource(
    show_spinner="Loading the victim ...",
    max_entries=4,
    hash_funcs=by_files("config.json", "model.safetensors"),
)
def get_victim(config: FolderSettings) -> Victim:
    """The classifier of a folder, copied once for all visitors."""
    return Victim.from_detector(get_detector(config))


def choose_attack() -> AttackChoice | None:
    """Draw the choices; None when there is no victim."""
    configs = victim_configs()
    if not configs:
        st.info(
            "No victim was found: expected a detector whose network names classes of pictures, such as cifar10-invariance. Fetch "
            "it with `idecode pull`, or run from a complete copy of the project."
        )
        return None
    wanted = asked("attack", ("victim", "attack", *(strength_key(name) for name in ATTACKS)))
    if wanted.get("attack") in ATTACKS:  # Streamlit writes the title into the link, people write the name
        st.session_state["attack"] = wanted["attack"]
    if st.session_state.get("victim", next(iter(configs))) not in configs:
        del st.session_state["victim"]  # its folder is gone
    st.selectbox(
        "Victim",
        list(configs),
        key="victim",
        **LINKED,
        help="The classifier that is to be fooled. The attack knows all of it.",
    )
    titles = {name: kind.title for name, kind in ATTACKS.items()}
    one_of("Attack", ATTACKS, "attack", label_visibility="visible", format_func=titles.__getitem__, wrap=True)
    config, kind = configs[st.session_state["victim"]], ATTACKS[st.session_state["attack"]]
    victim = get_victim(config)
    strength, strengths = choose_strength(kind, victim, wanted)
    explain_unmet_link(wanted, configs, kind, strength)
    return AttackChoice(victim, config, kind, strength, strengths)


def choose_label(sample: Sample, choice: AttackChoice) -> int | None:
    """The class that the picture shows, where it is known or the visitor says it."""
    label = known_label(sample)
    if label is not None and choice.config.dataset == DATASET:
        return label
    shown = st.selectbox(
        "It shows",
        [AS_THE_VICTIM_SAYS, *choice.victim.classes],
        key="shows",
        **LINKED,
        help="What counts as right. An attack can only succeed where the victim is right before it.",
    )
    return None if shown == AS_THE_VICTIM_SAYS else choice.victim.classes.index(shown)


def choose_strength(
    kind: AttackKind, victim: Victim, wanted: Mapping[str, str]
) -> tuple[float, tuple[float, ...]]:
    """The slider, with the strengths of the curve; what a link asks for is put between them."""
    key, default = strength_key(kind.name), kind.default_for(victim.dense)
    steps = (links.number_in(factor * default, 0, kind.highest) for factor in (0, *FACTORS))
    if (linked := links.number_in(wanted.get(key), 0, kind.highest)) is not None:
        st.session_state[key] = linked
    given = st.session_state.get(key, default)
    options = tuple(sorted({given, *(step for step in steps if step is not None)}))
    strength = st.select_slider(
        f"Strength: {kind.strength_means}",
        options,
        default,
        format_func=lambda value: f"{value:g}",
        key=key,
        **LINKED,
        help=f"{kind.unit.strip('()').capitalize()}. Each step doubles the one before.",
    )
    st.caption(f"{escape(kind.how)} {escape(kind.source)} {default:g}.")
    return float(strength), options


def strength_key(attack: str) -> str:
    """Key of the slider of one attack, and its name in the link."""
    return f"{attack}_strength"


def explain_unmet_link(
    wanted: Mapping[str, str], configs: Mapping[str, FolderSettings], kind: AttackKind, strength: float
) -> None:
    """A sentence for each choice that the link asks for and that is not what is shown."""
    key = strength_key(kind.name)
    why = {
        "victim": f"which names no classes of pictures or is not here (there is {escape(', '.join(configs))})",
        "attack": f"but it must be one of {', '.join(map(escape, ATTACKS))}",
        key: f"but it must be a number from 0 to {kind.highest:g}",
    }
    shown = {"victim": st.session_state["victim"], "attack": kind.name, key: strength}
    here = {
        name: text for name, text in wanted.items() if name in why and (name, text) != ("attack", kind.title)
    }
    links.explain_unmet_link("attack", here, shown, why)
