"""Lines that the teaching figures share: epsilon, a threshold, the height of uniform p-values."""

import plotly.graph_objects as go

from idecode_core.plots.style import CALIBRATION, THRESHOLD


def mark_epsilon(figure: go.Figure, epsilon: float) -> None:
    """A horizontal line at epsilon, for figures with p-values on the vertical axis."""
    figure.add_hline(
        y=epsilon,
        line={"color": THRESHOLD, "width": 2},
        annotation={"text": f"ε = {epsilon:g}", "font": {"color": THRESHOLD, "size": 13}},
        annotation_position="top right",
    )


def mark_uniform(figure: go.Figure, height: float) -> None:
    """A dashed line at the height that all bars have when p-values are uniform."""
    figure.add_hline(y=height, line={"color": CALIBRATION, "width": 2, "dash": "dash"})


def without_legend(figure: go.Figure) -> go.Figure:
    """For figures that say what is what beside the marks or in their caption."""
    return figure.update_layout(showlegend=False, margin_t=14)


def mark_threshold(figure: go.Figure, x: float, text: str, on_left: bool = False) -> None:
    """A vertical line at a threshold."""
    figure.add_vline(
        x=x,
        line={"color": THRESHOLD, "width": 2},
        annotation={
            "text": text,
            "font": {"color": THRESHOLD, "size": 13},
            "xshift": -4 if on_left else 4,
        },
        annotation_position="top left" if on_left else "top right",
    )
