"""New scores judged another way on the Certify page: many together, as a stream, within groups, for a source that has shifted, with the
help of known outliers, or in folds. It is `idecode certify` with its options."""

import warnings
from typing import TYPE_CHECKING, Any

import streamlit as st

from idecode_core.errors import IdecodeError
from idecode_core.files.archives import File
from idecode_core.files.names import csv_text, defused
from idecode_core.files.tables import USUAL, read_table
from idecode_core.quality.columns import VECTOR, before, common_draws, has_vectors, number_columns, summed
from idecode_core.quality.ways import ADDED, IN_TIME, Way
from idecode_core.report.content import command
from ui.frame.links import LINKED
from ui.frame.messages import escape
from ui.frame.uploads import score_files

if TYPE_CHECKING:
    from ui.certify.threshold import Scores

MANY = {
    "each": "each alone",
    "bh": "together (Benjamini-Hochberg)",
    "storey": "together (Storey)",
    "e-bh": "together, over seeds (e-BH)",
    "envelope": "with a cut chosen after looking",
    "lord++": "one after the other (LORD++)",
    "saffron": "one after the other (SAFFRON)",
    "addis": "one after the other (ADDIS)",
    "e-lond": "one after the other (e-LOND)",
    "shiryaev-roberts": "a stream: has it changed?",
}
BESIDE = {
    "": "nothing else",
    "groups": "groups: the bound holds in each",
    "shifted_to": "a source that has shifted",
    "outliers": "known outliers",
    "folds": "few points, scored in folds",
}
SLOTS = {
    "shifted_to": (
        "Rows of the new source",
        "Unlabelled, with the same columns; other than the rows that are judged.",
    ),
    "outliers": ("Known outliers", "Points that do not belong, with the same columns of scores; ten help."),
}
LABELS = {"--delta": "How sure", "--many": "How"}
"""What a command calls an option, and what the page does."""
NONE = "(none)"
SHOWN = 1_000


def another_way(scores: "Scores", settings: dict[str, Any]) -> None:
    """What to choose, what it promises and does not, and the rows."""
    if scores.known is None or scores.table is None:
        return
    st.markdown("## Judge the new scores another way")
    left, right = st.columns(2, gap="medium")
    many = left.selectbox("How", MANY, key="c_many", **LINKED, format_func=MANY.__getitem__,
                          help="Alone: the false alarm rate. Together: at most a share ε of the flags belong, on average. A stream: an "
                          "alarm where it changes.")  # fmt: skip
    beside = right.selectbox("With", BESIDE, key="c_beside", **LINKED, format_func=BESIDE.__getitem__)
    if (many, beside) == ("each", ""):
        return
    try:
        options = _options(scores, many, beside, right)
        if options is not None:
            _judged(scores, settings, {"many": many, **options})
    except IdecodeError as error:
        sentence = str(error)
        for option, label in LABELS.items():
            sentence = sentence.replace(option, label)
        st.warning(escape(sentence), icon=":material/warning:")


def _options(scores: "Scores", many: str, beside: str, place: Any) -> dict[str, Any] | None:
    """Further arguments of `Way`; None while a file is awaited."""
    assert scores.known is not None
    assert scores.table is not None
    options: dict[str, Any] = {}
    own = [title for title in scores.known.titles if title.lower() not in (*USUAL, VECTOR, scores.column)]
    offered = {"groups": [title for title in own if title in scores.table.titles], "folds": own}
    if beside in offered:
        options[beside] = place.selectbox(
            "Column", offered[beside], key=f"c_{beside}", placeholder="no such column in the files"
        )
        if options[beside] is None:
            return None
    elif beside:
        files = score_files("certify", {beside: SLOTS[beside]}, lambda name, data: (name, data), [place])
        if beside not in files:
            return None
        options[beside] = read_table(File(*files[beside]))
    if many in IN_TIME and scores.table.titles:
        time = place.selectbox("Times, to check the order", [NONE, *scores.table.titles], key="c_time")
        options["time"] = "" if time == NONE else time
    return options


def _judged(scores: "Scores", settings: dict[str, Any], options: dict[str, Any]) -> None:
    from idecode_core.conformal.certify import certify

    known, table = scores.known, scores.table
    assert known is not None
    assert table is not None
    column = scores.column
    if options["many"] == "e-bh" and not column and not has_vectors(known):
        column = next(iter(number_columns(known)), "")
    draws = common_draws(known, table, options.get("shifted_to"), options.get("outliers"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said above
        plain = known.scores(column) if column or not has_vectors(known) else summed(known, "", draws)
        way = Way(certify(plain, **settings), known, column, draws=draws, **options)
        of_new = way.names[0] if way.folds else "" if has_vectors(table) else column
        rows = way.rows(table, of_new)
    flagged = [row for row in rows if row["is_ood"]]
    st.markdown(f"**{len(flagged):,} of {len(rows):,}** new scores are flagged this way.")
    for sentence in way.said:
        st.markdown(escape(sentence.strip()))
    order = sorted(range(len(rows)), key=lambda i: _place(rows[i], options["many"]))
    shown = [{"row": i + 1, **_cells(rows[i])} for i in order[:SHOWN]]
    st.dataframe(shown, hide_index=True, height=240, key="c_judged")
    st.download_button(
        "CSV of all rows", csv_text([{**row, "is_ood": int(bool(row["is_ood"]))} for row in rows]), "judged.csv", "text/csv",
        key="c_judged_csv", icon=":material/download:", on_click="ignore",
    )  # fmt: skip
    st.code(_command(scores, settings, options, column), language="bash", wrap_lines=True)


def _place(row: dict[str, Any], many: str) -> tuple[bool, float]:
    """Flagged rows first, then by p-value; those of a stream stay in their order."""
    return not row["is_ood"], 0.0 if many in IN_TIME else row["p_value"] or 1.0


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    added = (*ADDED, "false_share")
    own = {
        before(title, ("row",)): defused(cell)
        for title, cell in row.items()
        if title not in added and not isinstance(cell, list)
    }
    return {
        **own,
        **({"at most false": row["false_share"]} if "false_share" in row else {}),
        "p-value": row["p_value"],
        "verdict": "flagged" if row["is_ood"] else "not flagged",
    }


def _command(scores: "Scores", settings: dict[str, Any], options: dict[str, Any], column: str) -> str:
    given = {key: getattr(value, "name", value) for key, value in options.items()}
    if given["many"] == "each":
        del given["many"]
    words = {**settings, "column": column, **given}
    return command(
        "certify",
        scores.names[0],
        **{"--test": scores.names[1]},
        **{f"--{key.replace('_', '-')}": value for key, value in words.items()},
    )
