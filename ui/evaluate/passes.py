"""AUROC against passes per picture: what an AUROC costs, ours and other methods' on our networks, from stored scores."""

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import checkpoint_root
from idecode_core.folder.stored import RIVALS
from idecode_core.plots.passes import auroc_against_passes, passes_words
from idecode_core.quality.cost import COSTS, NS, Costed, costed_methods
from ui.frame.cache import Stamps, stamps
from ui.frame.look import chart

DATASET = "cifar10"
"""What the methods of known cost know."""


def has_costs(dataset: str) -> bool:
    """Whether there is something to show beside a detector of this dataset."""
    return dataset == DATASET and (checkpoint_root() / RIVALS / COSTS).is_file()


def passes_view(selected: str) -> None:
    """The figure with the front, and all methods, the cheapest first."""
    root = checkpoint_root()
    files = (f"{RIVALS}/{COSTS}", f"{RIVALS}/scores/*/*.npz", "*/config.json", "*/scores/*.npz")
    methods = _methods(str(root), stamps(root, *files))
    if not methods:
        st.info("What the methods cost is not stored here.", icon=":material/info:")
        return
    st.markdown(
        "## AUROC against passes per picture",
        help="A pass is one picture that goes through a network once. iDECODe takes one for the input and one for each of its n "
        "variants, of each member of a merged detector.",
    )
    chart(auroc_against_passes(methods), key="ev_passes", alt=passes_words(methods))
    st.caption(
        "Up is better, left is cheaper. On the dashed steps no method is above at that many passes. Other methods look at the input "
        "once, on networks of ours, named in brackets, and are calibrated as ours are. n in the bar moves nothing here: detectors "
        f"are measured at n = {', '.join(map(str, NS[:-1]))} and {NS[-1]}."
    )
    lines = [
        {
            "Method": method.title,
            "Passes": f"{method.passes:g}",
            "Mean AUROC": f"{method.mean:.1f}",
            **({f"AUROC: {selected}": f"{method.aurocs[selected]:.1f}"} if selected in method.aurocs else {}),
        }
        for method in sorted(methods, key=lambda method: (method.passes, -method.mean))
    ]
    st.dataframe(lines, hide_index=True, key="ev_passes_table")


@st.cache_resource(show_spinner="Reading the stored scores ...", max_entries=2)
def _methods(root: str, stamps: Stamps) -> list[Costed]:
    try:
        return costed_methods(root)
    except IdecodeError:
        return []
