"""Group by group: a bound that holds on average over all inputs may hide a group that is flagged far more often."""

from typing import Any

import streamlit as st

from idecode_core.conformal.groups import GroupRate, reading
from idecode_core.files.names import defused
from idecode_core.folder.stored import Stored
from idecode_core.quality.strength import (
    FILE,
    P_VALUE,
    observed_in,
    stored_rates_by_group,
    table_rates_by_group,
    worst_treated,
)
from ui.frame.links import one_of
from ui.frame.messages import escape, refused
from ui.frame.uploads import score_files

OWN, BROUGHT = "The detector's test files", "A table of yours"
SLOTS = {
    "groups": (
        "p-values of inputs that belong",
        f"As `detect --csv` writes them: a column {P_VALUE}, and one that says each row's group, such as a camera. With the column "
        f"{FILE}, a group is the folder that a file lies in.",
    )
}


def groups(stored: Stored | None, n: int, epsilon: float, aggregate: str) -> GroupRate | None:
    """A selector of groups, and their rates beside the pooled one; returns the group to warn of, if there is one."""
    st.markdown("## Group by group")
    stored_rates = stored_rates_by_group(stored, n, epsilon, aggregate) if stored else ()
    chosen = one_of("Groups of", (OWN, BROUGHT), "g_groups", bind=None) if stored_rates else BROUGHT
    rates = stored_rates if chosen == OWN else _brought(epsilon)
    if not rates:
        st.caption(
            "Epsilon holds on average over all inputs, and one group, a camera or a class, may be flagged far more often than "
            "others. Bring the p-values of inputs that belong, with their groups, to see it."
        )
        return None
    st.markdown(escape(reading(list(rates), epsilon)))
    st.dataframe(_table(rates, epsilon), hide_index=True, key="g_groups_table")
    st.caption(
        "Inputs that belong, with all calibration inputs; the most often flagged group first. The interval is about the number of "
        "inputs in a group. "
        + (
            "Within the group: each input ranked among calibration inputs of its own group, so that epsilon holds in each."
            if rates[0].within is not None
            else "`certify --groups` ranks each input within its group, so that epsilon holds in each."
        )
    )
    return worst_treated(rates, epsilon)


def warning(worst: GroupRate, epsilon: float) -> str:
    """The first thing to know about a bound that is kept on average only."""
    return (
        f"The bound holds on average, and hides a group: **{escape(worst.group)}** is flagged {worst.ratio:.2g} times as often as all "
        f"inputs together, {worst.pooled:.1%} of {worst.points:,} at epsilon = {epsilon:g}. See Group by group below."
    )


def _table(rates: tuple[GroupRate, ...], epsilon: float) -> list[dict[str, Any]]:
    points = sum(rate.points for rate in rates)
    all_groups = GroupRate(
        "all groups", points, sum(rate.pooled * rate.points for rate in rates) / points, None, 1.0
    )
    lines = []
    for rate in (*rates, all_groups):
        seen = observed_in(rate, epsilon)
        line = {
            "Group": defused(rate.group),
            "Inputs": rate.points,
            "Flagged": seen.flagged,
            "Rate, one threshold": f"{seen.rate:.1%}",
            "95% interval": f"{seen.low:.1%} to {seen.high:.1%}",
            "Times the rate of all": f"{rate.ratio:.1f}",
        }
        if rates[0].within is not None:
            line["Rate, within the group"] = "" if rate.within is None else f"{rate.within:.1%}"
        lines.append(line)
    return lines


def _brought(epsilon: float) -> tuple[GroupRate, ...]:
    """Rates of a visitor's table by the column that they choose; a bad file costs a sentence, and the page stays."""
    from idecode_core.errors import IdecodeError
    from idecode_core.files.archives import File
    from idecode_core.files.tables import read_table

    left, right = st.columns(2, gap="large")
    files = score_files("guarantee", SLOTS, lambda name, data: (name, data), [left])
    if "groups" not in files:
        return ()
    try:
        table = read_table(File(*files["groups"]))
        table.place(P_VALUE)
        offered = [title for title in table.titles if title != P_VALUE]
        column = right.selectbox("Group", offered, _first(offered), key="g_groups_column")
        return table_rates_by_group(table, column, epsilon) if column else ()
    except IdecodeError as error:
        refused([str(error)])
        return ()


def _first(offered: list[str]) -> int:
    """The column that is most likely meant."""
    likely = [i for i, title in enumerate(offered) if title.lower() in ("group", "groups", "label")]
    return (likely or [offered.index(FILE) if FILE in offered else 0])[0]
