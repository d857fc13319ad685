"""Power beside a verdict: what share of the stored OOD sets the detector catches at this epsilon."""

from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import Stamps, get_stored, stored_stamps
from ui.frame.messages import escape
from ui.frame.settings import Settings

if TYPE_CHECKING:
    from idecode_core.evaluation.power import Caught
    from idecode_core.folder.stored import Stored


def show_power(config: FolderSettings, settings: Settings) -> None:
    """One sentence; a weak detector is called weak, in the colour of a warning."""
    from idecode_core.evaluation.power import is_weak, power_sentence

    n = min(settings.n, config.n_max)
    caught = _caught(
        config, str(config.folder), stored_stamps(config), n, settings.epsilon, settings.aggregate
    )
    sentence = escape(power_sentence(caught, settings.epsilon))
    words = f":orange[:material/warning: {sentence}]" if is_weak(caught) else sentence
    st.markdown(
        f":small[**What {escape(config.name)} catches:** {words}]",
        help="  \n".join(f"{escape(one.label)}: {one.share:.0%}" for one in caught) or None,
    )


@st.cache_resource(show_spinner=False, max_entries=64)
def _caught(
    _config: FolderSettings, folder: str, stamps: Stamps, n: int, epsilon: float, aggregate: str
) -> "tuple[Caught, ...]":
    """Kept for all visitors; nothing where no scores are stored."""
    from idecode_core.evaluation.power import power

    stored = stored_or_none(_config)
    return power(stored, n, epsilon, aggregate) if stored else ()


def stored_or_none(config: FolderSettings) -> "Stored | None":
    """The stored scores, where there are any that can be used."""
    try:
        return get_stored(config)
    except IdecodeError:
        return None
