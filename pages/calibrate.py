"""Calibrate: a visitor's own in-distribution files become the calibration set of a detector, in use at once on every page."""

import streamlit as st

from ui.calibrate.use import in_use, was_saved
from ui.frame.cache import get_configs, get_detector
from ui.frame.detectors import wait_for_input
from ui.frame.messages import guard
from ui.frame.modality import modality_of
from ui.frame.session_detectors import made_here
from ui.frame.settings import sidebar
from ui.frame.uploads import is_folder, many_files

LIVE = dict.fromkeys(("n", "epsilon", "aggregate"), ("calibration",))
ENOUGH = 2  # below, there is nothing to compare

with guard():
    settings = sidebar(LIVE)
    st.title("Calibrate")
    config = get_configs()[settings.detector]
    modality = modality_of(config)
    was_saved()
    if made := made_here(config):
        in_use(made)
    st.markdown(
        f"Bring {modality.plural} of what belongs in **your** setting, none of them used for training. The model stays; what counts as "
        "ordinary is learned again from your files, and with it the guarantee holds for inputs like yours. That repairs false "
        "alarms, not detection: the page says what is lost."
    )
    done = "cal_scored" in st.session_state
    with st.expander("Your files", expanded=not done, icon=":material/folder_open:"):
        folder = is_folder("cal_bring")
        samples = many_files(f"In-distribution {modality.plural}", "calibrate", modality, folder=folder)
    if len(samples) < ENOUGH:
        st.info(
            f"Drop in a zip or many {modality.plural} above; a hundred or more make a useful calibration set. Each file is checked, then "
            f"scored with {config.n_max} random transforms and compared with the shipped calibration set.",
            icon=":material/upload_file:",
        )
        wait_for_input()
    from ui.frame.scores import score_on_click

    if (vectors := score_on_click("cal", config, samples)) is None:
        wait_for_input()
    from ui.calibrate.panels import result

    result(config, get_detector(config), samples, vectors[0], settings.seed)
