"""Beside the outcome for one picture: how often the detector flags pictures that this attack has fooled the victim with."""

import streamlit as st

from idecode_core.attacks.kinds import set_name
from idecode_core.errors import IdecodeError
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from idecode_core.folder.shelf import DRAWS_PER_RUN, Scores, open_scores, score_paths
from idecode_core.folder.stored import ADVERSARIAL, CLEAN
from idecode_core.quality.methods import flagged_share
from ui.attack.outcome import Lab
from ui.frame.cache import Stamps, stamps
from ui.frame.messages import escape
from ui.frame.panels import JUDGED, panel
from ui.frame.settings import current


@panel("attack_rate", on=JUDGED)
def rate(lab: Lab) -> None:
    """One sentence from stored scores, under the settings of this moment; nothing where none are stored."""
    settings, kind = current(), lab.choice.kind
    calibration = lab.detector.calibration
    n = min(settings.n, calibration.n_max)
    scores = stored(lab.choice.config, lab.config)
    name = set_name(kind.name, lab.config.folder.name if kind.on_detector else None)
    if scores is None or name not in scores.sets or n > DRAWS_PER_RUN:
        return
    attacked, clean = (
        flagged_share(calibration, scores.sets[one].score_vectors, n, settings.epsilon, settings.aggregate)
        for one in (name, CLEAN)
    )
    st.markdown(
        f":small[**How often {escape(lab.config.name)} notices:** of {len(scores.sets[name]):,} test pictures with which "
        f"{escape(kind.title)} at strength {kind.default_for(lab.target.victim.dense):g} fooled {escape(lab.target.victim.name)}, "
        f"{attacked:.0%} are flagged at epsilon = {settings.epsilon:g}; of {len(scores.sets[CLEAN]):,} clean ones {clean:.0%}.]"
    )


def stored(victim: FolderSettings, judge: FolderSettings) -> Scores | None:
    """The scores of attacked test pictures, where there are any that were made with this detector."""
    folder, scorer = checkpoint_root() / ADVERSARIAL / victim.folder.name, judge.folder.name
    if not score_paths(folder, scorer):
        return None
    try:
        return _stored(str(folder), scorer, judge.scorer_sha256, stamps(folder, f"scores/{scorer}/*.npz"))
    except IdecodeError:
        return None


@st.cache_resource(show_spinner=False, max_entries=12)
def _stored(folder: str, scorer: str, scorer_sha256: str, stamps: Stamps) -> Scores:
    return open_scores(folder, scorer, scorer_sha256)
