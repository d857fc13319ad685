"""Your data: a visitor's own files become a detector, trained on them or an existing one calibrated on them."""

import streamlit as st

from ui.calibrate.bring import bring
from ui.calibrate.train import OFF, ask, may_train, watch
from ui.calibrate.use import in_use, was_saved
from ui.frame.cache import get_configs, get_detector, made_here
from ui.frame.detectors import wait_for_input
from ui.frame.links import LINKED, one_of
from ui.frame.messages import guard
from ui.frame.samples import modality_of
from ui.frame.settings import settings_bar

ENOUGH = 2  # below, there is nothing to compare

with guard():
    settings = settings_bar("Your data")
    config = get_configs()[settings.detector]
    modality = modality_of(config)
    was_saved()
    busy = watch()
    if made := made_here(config):
        in_use(made)
    st.markdown(
        f"Bring {modality.plural} of what belongs in **your** setting. **Train** makes a detector of them. **Calibrate** keeps the chosen "
        "detector's model and learns again what counts as ordinary: that repairs false alarms, not detection."
    )
    done = "cal_scored" in st.session_state
    with st.expander("Your files", expanded=not done, icon=":material/folder_open:"):
        belongs, outside = bring(modality)
    if len(belongs) < ENOUGH:
        st.info(
            f"Drop in a zip or many {modality.plural} above; a few hundred are a good start. The page then says whether Train or "
            f"Calibrate fits. {modality.plural.capitalize()} that do not belong are optional: the new detector is tested with them.",
            icon=":material/upload_file:",
        )
        wait_for_input()
    from ui.calibrate.calibration import CALIBRATE, TRAIN, TRIED, WAY, first_look, which_fits
    from ui.frame.scores import score_on_click

    detector = get_detector(config)
    if not (few := belongs.some(TRIED)):
        wait_for_input()
    fits = which_fits(config, first_look(detector, few, settings.seed))
    if not may_train():
        st.caption(OFF)
        way = CALIBRATE
    else:
        way = one_of("Way", (TRAIN, CALIBRATE), WAY, **{**LINKED, "default": fits})
    if way == TRAIN:
        ask(belongs, outside, busy=busy)
        wait_for_input()
    samples = belongs.everything()
    if (vectors := score_on_click("cal", config, samples)) is None:
        wait_for_input()
    from ui.calibrate.calibration import result

    result(config, detector, samples, vectors[0], settings.seed, outside.everything())
