"""Beside the outcome for one picture: how often the detector flags pictures that this attack has fooled the victim with."""

from pathlib import Path

import streamlit as st

from idecode_core.attacks.sets import set_name
from idecode_core.errors import IdecodeError
from idecode_core.evaluation.methods import flagged_share
from idecode_core.experiments.attack_scores import CLEAN, AttackScores, read_attack_scores, scores_path
from idecode_core.folder.scores import DRAWS_PER_RUN
from idecode_core.folder.settings import FolderSettings, checkpoint_root
from ui.attack.panels import Lab
from ui.frame.cache import Stamps, stamps
from ui.frame.messages import escape
from ui.frame.panels import panel
from ui.frame.settings import current


@panel("attack_rate")
def rate(lab: Lab) -> None:
    """One sentence from stored scores, under the settings of this moment; nothing where none are stored."""
    settings, kind = current(), lab.wish.kind
    calibration = lab.detector.calibration
    n = min(settings.n, calibration.n_max)
    scores = stored(lab.wish.config, lab.config)
    name = set_name(kind.name, lab.config.folder.name if kind.on_detector else None)
    if scores is None or name not in scores.sets or n > DRAWS_PER_RUN:
        return
    attacked, clean = (
        flagged_share(calibration, scores.sets[one], n, settings.epsilon, settings.aggregate)
        for one in (name, CLEAN)
    )
    st.markdown(
        f":small[**How often {escape(lab.config.name)} notices:** of {len(scores.sets[name]):,} test pictures with which "
        f"{escape(kind.title)} at strength {kind.default_for(lab.target.victim.dense):g} fooled {escape(lab.target.victim.name)}, "
        f"{attacked:.0%} are flagged at epsilon = {settings.epsilon:g}; of {len(scores.sets[CLEAN]):,} clean ones {clean:.0%}.]"
    )


def stored(victim: FolderSettings, judge: FolderSettings) -> AttackScores | None:
    """The scores of attacked test pictures, where there are any that were made with this detector."""
    path = scores_path(checkpoint_root(), victim.folder.name, judge.folder.name)
    if not path.exists():
        return None
    try:
        return _stored(str(path), judge.scorer_sha256, stamps(path.parent, path.name))
    except IdecodeError:
        return None


@st.cache_resource(show_spinner=False, max_entries=12)
def _stored(path: str, scorer_sha256: str, stamps: Stamps) -> AttackScores:
    return read_attack_scores(Path(path), scorer_sha256)
