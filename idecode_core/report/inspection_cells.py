"""An inspected batch as a notebook that computes it again and says so when anything differs."""

import base64
import textwrap

from idecode_core.report.inspection import Inspection
from idecode_core.report.notebook import HOME, Cell, Code, Text, to_notebook

DECODERS = {
    "image": ("from idecode_core.images import read_image", "read_image(DATA, name)", "sample"),
    "audio": ("from idecode_core.sounds import read_sound", "read_sound(DATA, name=name)", "sample.samples"),
}
"""Modality -> how a notebook imports the decoder, calls it, and what of the result the content hash is taken of."""

EMBED_LIMIT = 32 * 2**20
"""Bytes of samples that go into the notebook; a batch beyond that is read from files beside it."""


def inspection_notebook(inspection: Inspection) -> str:
    """The notebook file: it holds the samples, loads the detector and asserts the p-values of the screen."""
    cells: list[Cell] = [
        Text(
            f"# {len(inspection.samples)} sample{'s' if len(inspection.samples) != 1 else ''} under "
            f"{inspection.detector}\n\n"
            "This notebook computes again what the Inspect page showed: the samples are inside it, the detector comes "
            "from the repository. Run it from top to bottom. It stops at the first difference."
        ),
        Code(HOME),
        Text(
            "## The detector\n\nThe hashes make sure that it is the one of the page, weights and calibration."
        ),
        Code(detector_cell(inspection.detector, inspection.scorer_sha256, inspection.calibration_sha256)),
        Text(
            "## The samples\n\nFiles as they came, or lossless copies. The hash is of the decoded content; with the "
            "seed it determines the transforms that are drawn."
        ),
        Code(_samples_cell(inspection)),
        Text("## Algorithm 1"),
        Code(_detect_cell(inspection)),
        Text(
            "## As on the page?\n\nScores carry float noise of other processors and batch sizes, which may move a point past "
            "one neighbour in the ranking. So p-values may differ by one rank, 1/(k+1), and by no more."
        ),
        Code(_check_cell(inspection)),
    ]
    return to_notebook(cells)


def detector_cell(name: str, scorer_sha256: str, calibration_sha256: str) -> str:
    """Code that loads a detector by name and refuses another one."""
    return f"""\
from idecode_core import load_detector
from idecode_core.checkpoint import scorer_hash
from idecode_core.report import calibration_hash

checkpoints = Path(os.environ.get("IDECODE_CHECKPOINTS") or home / "checkpoints")
detector = load_detector(checkpoints / {name!r})
assert scorer_hash(detector.scorer) == {scorer_sha256!r}, "other weights or settings"
assert calibration_hash(detector.calibration) == {calibration_sha256!r}, "another calibration"
print(detector.name, "·", detector.summary, "· k =", detector.calibration.k)"""


def _samples_cell(inspection: Inspection) -> str:
    entries, embedded, beside = [], 0, False
    for sample in inspection.samples:
        embedded += len(sample.data)
        inside = embedded <= EMBED_LIMIT
        beside = beside or not inside
        text = textwrap.fill(base64.b64encode(sample.data).decode(), 120) if inside else ""
        packed = f'"""\n{text}\n"""' if inside else "None"
        entries.append(f"    ({sample.name!r}, {sample.content_hash!r}, {packed}),\n")
    data = "base64.b64decode(text)"
    if beside:
        data = "base64.b64decode(text) if text else Path(name).read_bytes()"
    note = "; None: too large to be inside, put the file beside this notebook" if beside else ""
    imported, call, hashed = DECODERS[inspection.modality]
    return f"""\
import base64

{imported}
from idecode_core.report import content_hash

files = [  # name, hash of the content, base64{note}
{"".join(entries)}]
samples = [{call.replace("DATA", data)} for name, _, text in files]
assert [content_hash({hashed}) for sample in samples] == [expected for _, expected, _ in files]"""


def _detect_cell(inspection: Inspection) -> str:
    lines = [
        "import numpy as np",
        "",
        f"n, epsilon, aggregate, seed = {inspection.n}, {inspection.epsilon!r}, {inspection.aggregate!r}, {inspection.seed}",
        "detection = detector.detect(samples, n=n, epsilon=epsilon, aggregate=aggregate, seed=seed)",
        "p_values, is_ood = detection.p_values, detection.is_ood",
    ]
    if inspection.smoothed or inspection.false_discovery_control:
        lines += ["", *_judge_lines(inspection)]
    lines += [
        "",
        "for (name, *_), p, flagged in zip(files, p_values, is_ood, strict=True):",
        "    print(f\"{name}: p = {p:.3g}, {'OOD' if flagged else 'iD'}\")",
    ]
    return "\n".join(lines)


def _judge_lines(inspection: Inspection) -> list[str]:
    """Smoothed p-values and false discovery control are steps after Algorithm 1."""
    options = []
    if inspection.smoothed:
        options.append("    smoothed_by=[smoothing_generator(content, seed) for _, content, _ in files],")
    if inspection.false_discovery_control:
        options.append(
            "    false_discovery_control=True,  # Benjamini-Hochberg over the batch, in place of p < epsilon"
        )
    names = "judge, smoothing_generator" if inspection.smoothed else "judge"
    return [
        f"from idecode_core.verdict import {names}",
        "",
        "verdicts = judge(",
        "    detector.calibration,",
        "    detection.score_vectors,",
        "    n=n,",
        "    epsilon=epsilon,",
        "    aggregate=aggregate,",
        *options,
        ")",
        "p_values = np.array([verdict.p_value for verdict in verdicts])",
        "is_ood = np.array([verdict.is_ood for verdict in verdicts])",
    ]


def _check_cell(inspection: Inspection) -> str:
    scores = ", ".join(repr(sample.verdict.score) for sample in inspection.samples)
    p_values = ", ".join(repr(sample.verdict.p_value) for sample in inspection.samples)
    return f"""\
shown_scores = [{scores}]
shown_p_values = [{p_values}]
one_rank = 1.001 / (detector.calibration.k + 1)
np.testing.assert_allclose(detection.scores, shown_scores, rtol=1e-3, atol=1e-5)
np.testing.assert_allclose(p_values, shown_p_values, rtol=0, atol=one_rank)
print("As on the page:", "exactly" if np.array_equal(p_values, shown_p_values) else "up to one rank")"""
