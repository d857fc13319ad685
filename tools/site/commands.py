"""The page on every command, from typer: what it does, its examples, its arguments and options."""

import re
from typing import Any

import typer

from idecode_core.cli.app import app

HEAD = """# Every option

Written from the commands themselves; `idecode COMMAND --help` says the same. `python -m idecode_core` is the same program as
`idecode`. [Commands](../commands.md) has exit statuses and what `--json` prints.
"""


def page() -> str:
    """Markdown of all commands, those of `idecode paper` last."""
    from paper.commands import app as paper

    parts = [HEAD]
    for name, command in sorted(below(typer.main.get_command(app))):
        if name not in ("paper", "reproduce"):
            parts.append(section(f"idecode {name}", command))
    for name, command in sorted(below(typer.main.get_command(paper))):
        parts.append(section(f"idecode paper {name}", command))
    return "\n".join(parts)


def below(command: Any, before: str = "") -> list[tuple[str, Any]]:
    """Every command of a group with its full name."""
    named = []
    for name, inner in command.commands.items():
        full = f"{before}{name}"
        named += below(inner, f"{full} ") if hasattr(inner, "commands") else [(full, inner)]
    return named


def section(name: str, command: Any) -> str:
    """One command. What stands after a \\b in its help is shown as it stands."""
    text, _, examples = (command.help or "").partition("\b")
    shown = "\n".join(line.strip() for line in examples.strip().splitlines()[1:])
    usage = " ".join(
        shown_name(parameter) if parameter.required else f"[{shown_name(parameter)}]"
        for parameter in command.params
        if parameter.param_type_name == "argument"
    )
    rows = [row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    table = "\n".join(["| | default | |", "|---|---|---|", *rows]) if rows else ""
    fence = f"```\n{shown}\n```\n" if shown else ""
    return f"## {name}\n\n`{name} {usage}`\n\n{escaped(text.strip())}\n\n{fence}\n{table}\n"


def shown_name(argument: Any) -> str:
    return str(argument.metavar or argument.name).upper()


def row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{shown_name(parameter)}`"
    else:
        names = ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    plain = isinstance(default, str | int | float) and not isinstance(default, bool) and default != ""
    shown = f"`{default}`" if plain else ""
    return f"| {names} | {shown} | {escaped(' '.join((parameter.help or '').split()))} |"


def escaped(text: str) -> str:
    """Words in capitals and pipes as they are meant, in Markdown too."""
    return re.sub(r"([|<>*])", r"\\\1", text)
