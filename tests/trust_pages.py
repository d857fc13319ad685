"""What the tests of Evaluate, Guarantee and Calibrate share: detector folders with and without stored scores, and
pages opened in them."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from streamlit.testing.v1 import AppTest

from idecode_core.files import write_json
from idecode_core.folder.shelf import ScoreSet, write_scores

HOME = Path(__file__).parent.parent
SHIPPED = HOME / "checkpoints" / "fashion-rotations"
K = 400


def make_checkpoints(root: Path) -> Path:
    """`fashion-rotations` with stored scores that are exchangeable with its calibration, and `bare` without any."""
    for name in ("fashion-rotations", "bare"):
        folder = root / name
        folder.mkdir()
        for file in ("config.json", "model.safetensors", "calibration.npz", "card.md"):
            shutil.copy(SHIPPED / file, folder / file)
        config = json.loads((folder / "config.json").read_text())
        config.pop("files", None)  # the list of SHIPPED; some files are changed below
        config["format"] = 1  # which may be without
        write_json(folder / "config.json", {**config, "name": name})
    folder = root / "fashion-rotations"
    write_json(folder / "config.json", {**config, "name": folder.name, "k": K})
    with np.load(folder / "calibration.npz") as arrays:
        vectors = arrays["score_vectors"]
    generator = np.random.default_rng(0)
    order = generator.permutation(len(vectors))
    np.savez(
        folder / "calibration.npz",
        score_vectors=vectors[order[:K]],
        seed=np.array(0),
        scorer=config["scorer_sha256"],
    )
    held_out = vectors[order[K : K + 300]]  # (300, 20)
    for name, label, factor in (
        ("fashion-test", "Fashion-MNIST", 1),
        ("svhn-test", "SVHN", 20),
        ("a-test", "Set A", 2),
    ):
        runs = [factor * generator.permuted(held_out, axis=1) for _ in range(5)]
        score_set = ScoreSet(
            name, label, name != "fashion-test", np.concatenate(runs, axis=1).astype(np.float32)
        )
        write_scores(folder, score_set, config["scorer_sha256"])
    return root


def open_page(name: str, link: dict[str, str] | None = None, **settings: object) -> AppTest:
    """A page as a visitor with these settings sees it, who came by this link."""
    app = AppTest.from_file(str(HOME / "pages" / f"{name}.py"), default_timeout=180)
    for key, value in settings.items():
        app.session_state[key] = value
    for key, value in (link or {}).items():
        app.query_params[key] = value
    return app.run()


def no_trouble(app: AppTest) -> None:
    assert not app.exception
    assert [error.value for error in app.error] == []


def png(seed: int, size: int = 28) -> bytes:
    """A small picture that no other seed gives."""
    pixels = np.random.default_rng(seed).integers(0, 256, size=(size, size), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()
