"""Calibrate: a visitor's own in-distribution files become the calibration set of a detector to download."""

import streamlit as st

from ui.bring_files import bring_files, content_key
from ui.cache import get_configs, get_detector
from ui.calibration_view import LIVE, result
from ui.messages import guard
from ui.settings import sidebar

ENOUGH = 2  # below, there is nothing to compare

with guard():
    settings = sidebar(LIVE)
    st.title("Calibrate")
    config = get_configs()[settings.detector]
    modality = str(config.get("modality", "image"))
    what = "sounds" if modality == "audio" else "pictures"
    st.markdown(
        f"Bring {what} of what belongs in **your** setting, none of them used for training. The model stays; what counts as "
        "ordinary is learned anew from your files, and with it the guarantee holds for inputs like yours."
    )
    done = st.session_state.get(
        "cal_scored"
    )  # what was scored last; the uploader then makes room for the result
    with st.expander("Your files", expanded=done is None, icon=":material/folder_open:"):
        bring = st.segmented_control(
            "Bring", ("Files or a zip", "A folder"), default="Files or a zip", required=True, key="cal_bring",
            label_visibility="collapsed",
        )  # fmt: skip
        samples = bring_files(f"In-distribution {what}", "calibrate", modality, folder=bring == "A folder")
    if len(samples) < ENOUGH:
        st.info(
            f"Drop in a zip or many {what} above; a hundred or more make a useful calibration set. Each file is checked, then "
            f"scored with {config.get('n_max', 20)} random transforms and compared with the shipped calibration set.",
            icon=":material/upload_file:",
        )
        st.stop()
    wanted = (config["folder"], config.get("scorer_sha256"), settings.seed, content_key(samples))
    from ui.scores import score_vectors

    if done != wanted:
        if not st.button(
            f"Score {len(samples):,} files", type="primary", icon=":material/play_arrow:", key="cal_score"
        ):
            st.stop()
        score_vectors(get_detector(config["folder"]), samples, settings.seed)
        st.session_state["cal_scored"] = wanted
        st.rerun()
    detector = get_detector(config["folder"])
    result(config, detector, samples, score_vectors(detector, samples, settings.seed), settings.seed)
