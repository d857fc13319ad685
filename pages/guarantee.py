"""Guarantee: what the bound on false detections promises, what it does not, and how it looks on data."""

from ui.frame.cache import get_configs
from ui.frame.messages import guard
from ui.frame.settings import settings_bar

with guard():
    config = get_configs()[settings_bar("Guarantee").detector]
    from ui.guarantee.rates import show_guarantee

    show_guarantee(config)
