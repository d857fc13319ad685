"""Pages of the library: its public names, and each room with what its docstrings say (mkdocstrings reads those)."""

import inspect
from pathlib import Path

import idecode_core

CORE = Path(idecode_core.__file__).parent
ROOMS = {
    "detector": "Detectors",
    "folder": "Detector folders",
    "conformal": "Conformal statistics",
    "quality": "How good is it?",
    "training": "Training",
    "scorer": "Scorers: the extension point",
    "scorers": "Ready scorers",
    "ncm": "Base NCMs",
    "transforms": "Transform sets",
    "models": "Models",
    "image": "Pictures",
    "audio": "Sounds",
    "session": "Sessions",
    "studio": "The app, from a notebook",
    "scale": "Many files",
    "serve": "For other programs",
    "export": "ONNX",
    "attacks": "Attacks",
    "plots": "Figures",
    "report": "Reports",
    "draws": "Draws",
    "verdict": "Words",
    "files": "Files in and out",
    "errors": "Errors",
}


def pages() -> dict[str, str]:
    """Place on the site -> Markdown."""
    return {"reference/library.md": names(), **{f"reference/{room}.md": room_page(room) for room in ROOMS}}


def modules(room: str) -> list[str]:
    """The modules of a room, its own first; those that begin with an underscore are nobody's business."""
    if (CORE / f"{room}.py").exists():
        return [f"idecode_core.{room}"]
    paths = sorted(
        (CORE / room).rglob("*.py"), key=lambda path: (path.parent, path.name != "__init__.py", path.name)
    )
    named = [path.relative_to(CORE.parent).with_suffix("").as_posix().replace("/", ".") for path in paths]
    return [name for name in named if not name.endswith("__init__") and "._" not in name]


def room_page(room: str) -> str:
    package = CORE / room / "__init__.py"
    about = inspect.getdoc(__import__(f"idecode_core.{room}", fromlist=["_"])) if package.exists() else ""
    parts = [f"::: {name}\n    options:\n      heading_level: 2" for name in modules(room)]
    return "\n\n".join([f"# {ROOMS[room]}", about or "", *parts])


def names() -> str:
    """What `from idecode_core import ...` gives, one line each; these stay (stability.md)."""
    rows = ["| name | |", "|---|---|"]
    for name in idecode_core.__all__:
        if name.startswith("__"):
            continue
        thing = getattr(idecode_core, name)
        home = getattr(thing, "__module__", None) or f"idecode_core.{idecode_core._HOMES[name]}"
        said = (inspect.getdoc(thing) or "").splitlines() if callable(thing) else ["The choices of F."]
        rows.append(f"| [`{name}`][{home}.{name}] | {said[0].replace('|', chr(92) + '|')} |")
    intro = (
        "# The library\n\nWhat `from idecode_core import ...` gives. These names stay until 2.0 ([what stays](../stability.md)); "
        "the pages below have each room of the library, with everything in it that has a name without an underscore.\n\n"
    )
    rooms = "\n".join(f"- [{title}]({room}.md): `idecode_core.{room}`" for room, title in ROOMS.items())
    about = inspect.getdoc(idecode_core) or ""
    conventions = about[about.index("Conventions") : about.index("    from idecode_core")].replace(
        ":\n-", ":\n\n-"
    )
    return f"{intro}{conventions}\n" + "\n".join(rows) + f"\n\n## Rooms\n\n{rooms}\n"
