"""RESULTS.md: each command writes its own section between markers and leaves the others as they are."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from idecode_core.errors import DataError
from idecode_core.files import write_text
from idecode_core.files.names import printable
from idecode_core.files.read import reason

INTRODUCTION = """# Results

Our numbers beside the paper's (Kaur et al., AAAI 2022). This file is written by `python -m idecode_core reproduce`;
each section names the command that recomputes it, in seconds, from the score vectors stored in `checkpoints/`.

Under a detector's name: how many points calibrate it (k), how many draws of each point are stored, keyed by content, and how long it trained.
Rates are in percent. "±" is the standard deviation over five runs that share the model and the calibration set and
draw their transforms independently, as in the paper, or fewer where fewer than 100 draws are stored. A run of n takes n draws in a row, and runs lie a fifth of the stored
draws apart, or n where that is more: of 40 draws, n=5 takes 1-5, 9-13 and so on, five runs, and n=20 takes 1-20 and 21-40; of 25, n=20 takes 1-20 alone. In-distribution is the positive class; TNR is taken at 90 % TPR, FPR95 is the share of OOD points that pass when 95 % of the iD points are kept. Intervals
are of the AUROC, at 95 %, from the number of test points (DeLong): "±" is about draws, intervals are about points.
"""
COMPARABILITY = """What can be compared: our networks are compact ones, trained on two CPU cores; the paper trained a
ResNet-34 for 2,600 epochs. Tiny-ImageNet stands for its ImageNet, Places (MiniPlaces at 32 px) for its Places365, and
"LSUN proxy" (Places images of nine of LSUN's ten scenes) for its LSUN; iSUN is not in the paper. The paper's Places365
numbers for projective transforms (99.98) come from images that were warped at 256 px and resized afterwards, so they
show a difference in preprocessing; ours are resized first. The test points are a random part of each set, chosen by a
fixed seed (CIFAR-10: of the first half of its test split). `cifar10-rotations`, which is a member of `cifar10-turn-distance`,
uses a base NCM of ours (the section on familiarity compares it with the paper's), chosen on development data that hold
other points of the same OOD sets. Rotations are the paper's, sampled bicubically (docs/rotations.md). `cifar10-joint` and both members of
`cifar10-merged` learn class labels too; their base NCMs are ours and were chosen on development data that hold no set of the tables, but
four of whose seven sets were pictures of CIFAR-100's training split, which are close kin of the CIFAR-100 column (docs/joint.md). Detectors do not all calibrate on the
same points: `split.npz` in a detector's folder says which. Models were trained on two CPU cores that other work shared, so training times are upper bounds."""

SECTION = r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->\n?"


@dataclass(frozen=True)
class Section:
    """One experiment: its text, and the figures that go beside RESULTS.md (file name -> SVG)."""

    name: str
    title: str
    body: str
    figures: dict[str, str] = field(default_factory=dict)

    def markdown(self) -> str:
        figures = "".join(f"\n![{self.title}](results/{file})\n" for file in self.figures)
        command = f"Command: `python -m idecode_core reproduce {self.name}`."
        return f"## {self.title}\n\n{command}\n{figures}\n{self.body.strip()}\n"


def write_section(path: Path, section: Section, order: Sequence[str]) -> None:
    """Replace the section's part of the file, or put it in its place in the order; figures go to results/ beside the file."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else INTRODUCTION
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is no text ({reason(error)}): expected RESULTS.md, or a new file.") from None
    parts = dict(re.findall(SECTION, text, flags=re.DOTALL))
    between = re.sub(SECTION, "", text[text.find("<!-- begin ") :], flags=re.DOTALL).strip() if parts else ""
    if between:
        raise DataError(
            f"{path} has text between or after its sections, which would be lost ({printable(between[:40])}): move it before the "
            "first section, or choose another file."
        )
    parts[section.name] = section.markdown()
    head = re.split(r"\n*<!-- begin ", text, maxsplit=1)[0].rstrip()
    if head.startswith(
        INTRODUCTION.splitlines()[0]
    ):  # ours, perhaps of an earlier version; somebody else's stays
        head = f"{INTRODUCTION}\n{COMPARABILITY}"
    ordered = sorted(parts, key=lambda name: (order.index(name) if name in order else len(order), name))
    blocks = [f"<!-- begin {name} -->\n{parts[name]}<!-- end {name} -->\n" for name in ordered]
    for file, svg in section.figures.items():
        write_text(path.parent / "results" / file, svg)
    write_text(path, "\n".join([f"{head}\n", *blocks]))
