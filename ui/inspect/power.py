"""Power beside a verdict: what share of the stored OOD sets the detector catches at this epsilon."""

import streamlit as st

from idecode_core.evaluation.power import Caught, is_weak, power, power_sentence
from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import STORED_FILES, by_files
from ui.frame.messages import escape
from ui.frame.settings import Settings
from ui.frame.stored import stored_or_none


def show_power(config: FolderSettings, settings: Settings) -> None:
    """One sentence; a weak detector is called weak, in the colour of a warning."""
    n = min(settings.n, config.n_max)
    caught = _caught(config, n, settings.epsilon, settings.aggregate)
    sentence = escape(power_sentence(caught, settings.epsilon))
    words = f":orange[:material/warning: {sentence}]" if is_weak(caught) else sentence
    st.markdown(
        f":small[**What {escape(config.name)} catches:** {words}]",
        help="  \n".join(f"{escape(one.label)}: {one.share:.0%}" for one in caught) or None,
    )


@st.cache_resource(show_spinner=False, max_entries=64, hash_funcs=by_files(*STORED_FILES))
def _caught(config: FolderSettings, n: int, epsilon: float, aggregate: str) -> tuple[Caught, ...]:
    """Kept for all visitors; nothing where no scores are stored."""
    stored = stored_or_none(config)
    return power(stored, n, epsilon, aggregate) if stored else ()
