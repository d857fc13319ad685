"""Function calls as notebook code: what a page computed, written down so that a notebook computes it again.

A page names the functions it called and their arguments; the code is written from these, so it cannot drift from
the library's names. Randomness arrives as a seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from idecode_core.errors import SettingError
from idecode_core.report.notebook import HOME, Cell, Code, Text, to_notebook


@dataclass(frozen=True)
class Seed:
    """An argument that is a fresh random generator of this seed."""

    value: int


@dataclass(frozen=True)
class Expression:
    """An argument that is code: the name of an earlier result, or something made of it."""

    code: str


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


def steps_notebook(
    title: str, introduction: str, steps: Sequence[Step | Code], shown: Mapping[str, float | Sequence[float]]
) -> str:
    """A notebook that takes the steps and asserts what was on the screen: `shown` maps expressions to values.

    >>> notebook = steps_notebook("Sum", "One.", [Step("total", sum, {"iterable": [1, 2]})], {"total": 3})
    >>> "np.testing.assert_allclose(total, 3" in notebook
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
    if shown:
        cells.append(Text("## As on the page?\n\nEvery number below was on the screen."))
        checks = [
            f"np.testing.assert_allclose({code}, {source(value)}, rtol=1e-6)" for code, value in shown.items()
        ]
        cells.append(Code("\n".join([*checks, 'print("As on the page.")'])))
    return to_notebook(cells)


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
        return f"np.random.default_rng({value.value})"
    if isinstance(value, Expression):
        return value.code
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
