"""Attack lab: the same picture to the eye, another class to a classifier; does the detector see it?"""

import streamlit as st

from ui.attack.picture import choose_picture
from ui.frame import look
from ui.frame.detectors import wait_for_input
from ui.frame.messages import guard
from ui.frame.settings import settings_bar

with guard():
    st.html(look.STYLE)
    settings = settings_bar("Attack lab")
    with st.container(key="verdict_first"):
        pick, show = st.columns([1, 2.4], gap="large")
    with pick:
        sample = choose_picture()
        from ui.attack.choice import choose_attack, choose_label

        choice = choose_attack()
        label = choose_label(sample, choice) if sample and choice else None
    if sample is None or choice is None:
        show.info("Choose a picture at the left, or drop in one of your own.", icon=":material/west:")
        wait_for_input()
    from ui.attack.lab import curve, start, worst
    from ui.attack.outcome import STYLE, charts, export, rate, sizes, verdict
    from ui.attack.run import target_of

    st.html(STYLE)
    with show:
        lab = start(target_of(sample, choice, label), choice, settings)
        verdict(lab)
        rate(lab)
        sizes(lab)
    charts(lab)
    if lab.is_right_before:
        curve(lab)
        worst(lab)
    export(lab)
