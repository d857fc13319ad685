"""Power beside a verdict: what share of the stored OOD sets the detector catches at this epsilon."""

from typing import TYPE_CHECKING

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import Stamps, get_stored, stored_stamps
from ui.frame.messages import escape
from ui.frame.settings import Settings

if TYPE_CHECKING:
    from idecode_core.evaluation.power import SetPValues
    from idecode_core.folder.stored import Stored


def show_power(config: FolderSettings, settings: Settings) -> None:
    """One sentence; a weak detector is called weak, in the colour of a warning."""
    from idecode_core.evaluation.power import is_weak, power, power_sentence

    caught = power(p_values_of(config, min(settings.n, config.n_max), settings.aggregate), settings.epsilon)
    sentence = escape(power_sentence(caught, settings.epsilon))
    words = f":orange[:material/warning: {sentence}]" if is_weak(caught) else sentence
    st.markdown(
        f":small[**What {escape(config.name)} catches:** {words}]",
        help="  \n".join(f"{escape(one.label)}: {one.share:.0%}" for one in caught) or None,
    )


def p_values_of(config: FolderSettings, n: int, aggregate: str) -> "tuple[SetPValues, ...]":
    """Kept for all visitors; nothing where no scores are stored."""
    return _p_values(config, str(config.folder), stored_stamps(config), n, aggregate)


@st.cache_resource(show_spinner=False, max_entries=64)
def _p_values(
    _config: FolderSettings, folder: str, stamps: Stamps, n: int, aggregate: str
) -> "tuple[SetPValues, ...]":
    from idecode_core.evaluation.power import ood_p_values

    stored = stored_or_none(_config)
    return ood_p_values(stored, n, aggregate) if stored else ()


def stored_or_none(config: FolderSettings) -> "Stored | None":
    """The stored scores, where there are any that can be used."""
    try:
        return get_stored(config)
    except IdecodeError:
        return None
