"""Function calls as notebook code: what a page computed, written down so that a notebook computes it again.

A page names the functions it called and their arguments; the code is written from these, so it cannot drift from
the library's names. Randomness arrives as a seed. A report takes the same steps on the results that the page has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from idecode_core.errors import SettingError
from idecode_core.report.notebook import HOME, Cell, Code, Text, to_notebook

if TYPE_CHECKING:
    from idecode_core.conformal.judge import Verdict

Results = Mapping[str, Any]
"""What earlier steps gave, by name."""


class Seed(int):
    """An argument that is a fresh random generator of this seed."""


class Expression(str):
    """An argument that is code: the name of an earlier result, or something made of it."""


@dataclass(frozen=True)
class Step:
    """result = function(**arguments)."""

    result: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """Markdown above the code."""
    show: bool = False
    """Show the result, as for a figure."""


def take(step: Step, results: Results) -> Any:
    """The step taken here: what the notebook will show.

    >>> take(Step("p", round, {"number": Expression("score / 3"), "ndigits": 2}), {"score": 1.0})
    0.33
    """
    return step.function(**{name: evaluate(source(value), results) for name, value in step.arguments.items()})


def seen(expressions: Iterable[str], results: Results) -> dict[str, Any]:
    """Expressions with the values that they have on the page, for the notebook to compare with its own."""
    return {code: evaluate(code, results) for code in expressions}


def evaluate(code: str, results: Results) -> Any:
    """A line of the notebook, here. The code is this library's; what a visitor gave stands in it as a literal."""
    return eval(code, {"np": np, **results})


def steps_notebook(
    title: str, introduction: str, steps: Sequence[Step | Code], shown: Mapping[str, Any]
) -> str:
    """A notebook that takes the steps and asserts what was on the screen: `shown` maps expressions to values.

    >>> notebook = steps_notebook("Rounded", "One.", [Step("whole", round, {"number": 2.6})], {"whole": 3})
    >>> "np.testing.assert_allclose(whole, 3" in notebook
    True
    """
    cells: list[Cell] = [Text(f"# {title}\n\n{introduction}"), Code(HOME), Code("import numpy as np")]
    for step in steps:
        if isinstance(step, Code):
            cells.append(step)
            continue
        if step.text:
            cells.append(Text(step.text))
        cells.append(Code(step_source(step)))
    return to_notebook([*cells, *(as_on_the_page(shown) if shown else ())])


def as_on_the_page(shown: Mapping[str, Any], rtol: float = 1e-6) -> list[Cell]:
    """The last cells of a notebook: expressions have the values that were on the screen."""
    checks = [
        f"np.testing.assert_allclose({code}, {source(value)}, rtol={rtol:g})" for code, value in shown.items()
    ]
    return [
        Text("## As on the page?\n\nEvery number below was on the screen."),
        Code("\n".join(["import numpy as np", "", *checks, 'print("As on the page.")'])),
    ]


def step_source(step: Step) -> str:
    """The import, the call, and the result's name as the last line when it is to be shown."""
    module, name = step.function.__module__, step.function.__qualname__
    if "<" in name:
        raise SettingError(
            f"A notebook can only call functions that a module has by name, got {module}.{name}."
        )
    owner = name.split(".")[0]
    lines = [] if module == "builtins" else [f"from {module} import {owner}", ""]
    arguments = [f"{argument}={source(value)}" for argument, value in step.arguments.items()]
    call = f"{step.result} = {name}({', '.join(arguments)})"
    if len(call) > 110:
        call = "\n".join([f"{step.result} = {name}(", *(f"    {argument}," for argument in arguments), ")"])
    return "\n".join([*lines, call, *([step.result] if step.show else [])])


def source(value: Any) -> str:
    """A value as code; only what a reader of the notebook could have typed."""
    if isinstance(value, Seed):
        return f"np.random.default_rng({int(value)})"
    if isinstance(value, Expression):
        return str(value)
    if isinstance(value, np.ndarray):
        return f"np.array({source(value.tolist())})"
    if isinstance(value, np.generic):
        return source(value.item())
    if isinstance(value, list | tuple):
        inside = ", ".join(source(entry) for entry in value)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{source(key)}: {source(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, str | int | float | bool):
        return repr(value)
    raise SettingError(
        f"A notebook cannot hold a {type(value).__name__} as code. Give numbers, text, lists, an array or a Seed."
    )


def same_verdicts(verdicts: "Sequence[Verdict]", first: str) -> list[Cell]:
    """Cells that hold `judgement` against the verdicts of the page; `first` is code that comes before the comparison."""
    return [
        Text(
            "## As on the page?\n\nScores carry float noise of other processors and batch sizes, which may move a point past "
            "one neighbour in the ranking. So p-values may differ by one rank, 1/(k+1), and by no more."
        ),
        Code(
            f"""\
{first}
shown_scores = {[verdict.score for verdict in verdicts]!r}
shown_p_values = {[verdict.p_value for verdict in verdicts]!r}
one_rank = 1.001 / (judgement.k + 1)
np.testing.assert_allclose(judgement.scores, shown_scores, rtol=1e-3, atol=1e-5)
np.testing.assert_allclose(judgement.p_values, shown_p_values, rtol=0, atol=one_rank)
print("As on the page:", "exactly" if np.array_equal(judgement.p_values, shown_p_values) else "up to one rank")"""
        ),
    ]
