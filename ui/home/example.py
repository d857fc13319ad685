"""The live example of the home page: a handful of bundled samples, one detector, a verdict."""

from itertools import islice

import streamlit as st

from idecode_core.folder.settings import FolderSettings
from ui.frame.cache import get_detector
from ui.frame.choices import choose_sample
from ui.frame.messages import escape
from ui.frame.modality import modality_of
from ui.frame.panels import panel
from ui.frame.settings import current

SHOWN = 4  # of each kind


@panel("example")
def live_example(config: FolderSettings) -> None:
    """Choose a sample, see the verdict and where it lies among the calibration scores."""
    modality = modality_of(config)
    gallery = modality.gallery(config)
    step = max(len(gallery.foreign) // SHOWN, 1)
    foreign = dict(islice(gallery.foreign.items(), 0, SHOWN * step, step))
    belonging = dict(islice(gallery.belonging.items(), SHOWN))
    offered = [*foreign, *belonging]
    if not offered:
        st.info("Open Inspect to try this detector.", icon=":material/search:")
        return
    if st.session_state.get("example_sample") not in offered:
        st.session_state["example_sample"] = offered[0]
    address = st.session_state["example_sample"]
    left, right = st.columns([1, 2.4], gap="large")
    with left:
        st.caption(f"Click a {modality.thing}: the detector judges it now.")
        for key, title, group in (
            ("foreign", gallery.foreign_title, foreign),
            ("belonging", escape(config.summary), belonging),
        ):
            choose_sample(f"{modality.prefix}{key}", title, group, address, "example_sample", reset="draw")
        if st.button(
            f"Inspect a {modality.thing} of your own", type="primary", icon=":material/upload_file:"
        ):
            st.switch_page("pages/inspect.py", query_params={f"{modality.prefix}source": "Files"})
    with right:
        from ui.frame.scores import score_vectors
        from ui.frame.verdicts import verdicts
        from ui.inspect.panels import show_aggregate, show_verdict

        sample = modality.find(config, address)
        assert sample is not None  # it is offered
        detector, settings = get_detector(config), current()
        vectors = score_vectors(detector, [sample], settings.seed)
        [verdict] = verdicts(detector, [sample.content_hash], vectors, settings)
        show_verdict(config, sample, verdict, settings)
        show_aggregate(detector, verdict, settings, height=230)
