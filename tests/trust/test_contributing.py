"""The recipes of CONTRIBUTING are followed here, step by step: what they say is enough."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from small import random_images, small_scorer
from streamlit.testing.v1 import AppTest
from torch import Tensor

from idecode_core import transforms as transform_sets
from idecode_core.detector import Detector
from idecode_core.draws import Keys, Prepared, content_key, uniforms
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.image.read import decode
from idecode_core.ncm import BASE_NCMS, BaseNCM
from idecode_core.scorer import SCORERS, Inspected, Scored, Term, Variant, in_one_pass, prepared
from tools.write_map import core_map, written
from ui.frame import catalogue

ROOT = Path(__file__).parents[2]
IMAGES = random_images(40, seed=5)


def survives_a_folder(scorer: Any, folder: Path) -> None:
    """Calibrated, saved, loaded: the same answer, and a p-value for everything."""
    detector = Detector.calibrate("mine", scorer, IMAGES[:30], n_max=3)
    save_detector(detector, folder)
    before, after = (one.detect(IMAGES[30:], n=3) for one in (detector, load_detector(folder, "cpu")))
    assert np.array_equal(before.score_vectors, after.score_vectors)
    assert np.array_equal(before.p_values, after.p_values)
    order = np.arange(10)[::-1]
    np.testing.assert_allclose(
        detector.detect(IMAGES[30:][order], n=3).score_vectors, before.score_vectors[order], rtol=1e-4
    )


@dataclass(frozen=True, eq=False)
class Brightness:
    """Step 1: bright pictures are strange. No transforms: every draw has the same score."""

    kind: ClassVar[str] = "brightness"
    modality: ClassVar[str] = "image"
    offset: float

    def decode(self, samples: Any) -> Iterator[Any]:
        return decode(samples)

    def prepare(self, decoded: Any, seed: int) -> Prepared:
        return Prepared(content_key(decoded, seed), seed, float(decoded.mean()))

    def score(self, samples: Any, *, n: int, seed: int, progress: Any = None) -> Scored:
        points = prepared(self, samples, seed)
        batches = (({"": np.full((1, n), point.x - self.offset)}, [torch.zeros(n)]) for point in points)
        return in_one_pass(batches, progress, "image")[""]

    def inspect(self, sample: Any, *, n: int, seed: int) -> Inspected:
        vector = self.score(sample, n=n, seed=seed).score_vectors[0]
        blank = np.zeros((8, 8, 3), np.uint8)
        variants = tuple(Variant(blank, "nothing", "bright", float(v), i) for i, v in enumerate(vector))
        return Inspected(vector, variants, tuple((Term("brightness", float(v)),) for v in vector))

    def describe(self, parameters: Tensor) -> list[str]:
        return ["nothing"] * len(parameters)

    def settings(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def tensors(self) -> dict[str, Tensor]:
        return {"offset": torch.tensor(self.offset)}

    @classmethod
    def build(cls, settings: Mapping[str, Any], tensors: Mapping[str, Tensor], device: Any) -> "Brightness":
        return cls(float(tensors["offset"]))


def test_a_new_scorer_is_one_file_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "a_file_of_mine", sys.modules[__name__])
    monkeypatch.setitem(SCORERS, "brightness", "a_file_of_mine:Brightness")  # step 2
    survives_a_folder(Brightness(12.0), tmp_path / "mine")
    detector = load_detector(tmp_path / "mine", "cpu")
    scores = detector.detect(IMAGES, n=2).scores
    np.testing.assert_allclose(scores, 2 * (IMAGES.reshape(40, -1).mean(axis=1) - 12.0))  # step 3
    white = np.full((1, 16, 16, 3), 255, np.uint8)
    assert detector.detect(white, n=1, epsilon=0.1).is_ood.all()


@dataclass(frozen=True)
class Flips:
    """Step 1: upside down, or not; the model is asked which."""

    share: float = 0.5
    variants: int = 1

    def sample(self, keys: Keys, n: int) -> Tensor:
        return torch.from_numpy(uniforms(keys, n, 1)[..., 0] < self.share)  # (batch, n)

    def apply(self, x: Tensor, parameters: Tensor) -> Tensor:
        flipped = parameters.to(x.device)[:, :, None, None, None]
        return torch.where(flipped, x.flip(-2)[:, None], x[:, None])

    def target(self, parameters: Tensor) -> Tensor:
        return parameters.long()

    def describe(self, parameters: Tensor) -> list[str]:
        return ["upside down" if flipped else "as it is" for flipped in parameters]

    def answers(self, prediction: Tensor) -> list[str]:
        return ["upside down" if best else "as it is" for best in prediction.argmax(dim=-1)]


def test_a_new_transform_set_can_be_saved_once_it_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = small_scorer(Flips(), "cross_entropy", outputs=2)
    monkeypatch.setitem(transform_sets.TRANSFORM_SETS, "flips", Flips)  # step 2
    survives_a_folder(scorer, tmp_path / "mine")
    found = load_detector(tmp_path / "mine", "cpu").inspect(IMAGES[0], n=3)
    assert {variant.applied for variant in found.variants} <= {"upside down", "as it is"}
    for variant in found.variants:
        shown = IMAGES[0][::-1] if variant.applied == "upside down" else IMAGES[0]
        assert np.array_equal(variant.image, shown)  # step 3: another implementation of apply
    keys = np.random.default_rng(0).integers(0, 2**63, (5, 2), dtype=np.uint64)
    assert torch.equal(Flips().sample(keys, 2), Flips().sample(keys, 9)[:, :2])


def brier(prediction: Tensor, target: Tensor) -> Tensor:
    """Step 1: the squared distance of M's shares from the transform that was applied."""
    truth = torch.nn.functional.one_hot(target, prediction.shape[-1])
    return (prediction.softmax(dim=-1) - truth).square().sum(dim=-1)


def test_a_new_base_ncm_is_a_function_and_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BASE_NCMS, "brier", BaseNCM(brier, "g"))  # step 2
    survives_a_folder(small_scorer(base_ncm="brier"), tmp_path / "mine")
    shares = np.array([0.7, 0.2, 0.1])
    by_hand = 0.7**2 + 0.8**2 + 0.1**2
    found = brier(torch.log(torch.tensor(shares))[None, None], torch.tensor([[1]]))
    assert float(found) == pytest.approx(by_hand, rel=1e-5)  # step 3


def test_a_new_page_is_a_thin_file_and_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "hello.py"
    page.write_text(
        "import streamlit as st\n\nfrom ui.frame.messages import guard\nfrom ui.frame.settings import settings_bar\n\n"
        "with guard():\n    settings = settings_bar()\n    st.title('Hello')\n    st.write(settings.epsilon)\n"
    )
    entry = catalogue.PageEntry("hello", "Hello", "waving_hand", "Use", "Says hello.")
    monkeypatch.setattr(catalogue, "PAGES", (*catalogue.PAGES, entry))
    assert entry not in catalogue.pages()  # no file of that name in pages/ yet: it is not offered
    shown = AppTest.from_file(str(page), default_timeout=60).run()
    assert not shown.exception
    assert shown.title[0].value == "Hello"
    assert any("0.05" in text.value for text in shown.markdown)


def test_the_cores_root_has_at_most_a_dozen_modules() -> None:
    modules = sorted(path.stem for path in (ROOT / "idecode_core").glob("*.py"))
    assert len(modules) <= 12, f"{modules}: a new one belongs in one of the folders"


def test_contributing_has_a_recipe_for_each() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for thing in ("a scorer", "a transform set", "a base NCM", "a page"):
        part = text.split(f"## Add {thing} in three steps")[1].split("\n## ")[0]
        assert [f"{i}. **" in part for i in (1, 2, 3)] == [True] * 3


def test_the_map_is_the_one_that_the_import_rules_give():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert written(text, "map", core_map()) == text, "run `python -m tools.write_map`"


def test_from_a_file_to_a_verdict_one_reads_eight_files_and_few_modules_are_imported():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(idecode_core/[\w/]+\.py)` \|", text, flags=re.MULTILINE)
    assert len(listed) <= 8
    script = (
        "import sys\nimport numpy as np\nfrom idecode_core import load_detector\n"
        "load_detector('fashion-rotations', 'cpu').detect(np.zeros((1, 28, 28, 3), np.uint8))\n"
        "print(*(m for m in sys.modules if m.startswith('idecode_core')))"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = ran.stdout.split()
    assert {file[:-3].replace("/", ".") for file in listed} <= set(imported)
    assert len(imported) <= 55, sorted(imported)


IN_TESTS_OF = {  # words, data and inner steps that are tested through their one caller
    "cli.app": "test_commands",
    "conformal.settings": "test_serve",
    "errors": "test_loop",
    "files.shown": "test_methods",
    "folder.manifest": "test_stored",
    "modality": "test_detect",
    "models.music_network": "test_sound_distance",
    "models.vgg": "test_audio_scorer",
    "plots.marks": "test_plots_evaluation",
    "plots.svg": "test_scorers",
    "quality.evaluate": "test_evaluate_and_guarantee",
    "report.card": "test_selection_leak",
    "report.explore": "test_show",
    "report.tables": "test_experiments",
    "report.user_data": "test_train_folder",
    "scorers.call_network": "test_user_network",
    "scorers.features": "test_distances",
    "scorers.logits": "test_rivals",
    "session.making": "test_session",
    "studio": "test_session_pages",
    "training.folder_work": "test_train_folder",
    "training.recipe": "test_loop",
    "training.tasks.task": "test_loop",
    "transforms.base": "test_transforms",
}


@cache
def named_in(path: Path) -> frozenset[str]:
    """The modules of the core that a file imports: from where they stand, through a door, by name, or with a helper's file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
            if node.module.startswith("test_"):
                names |= named_in(TEST_FILES[node.module])
            elif node.module.startswith("idecode_core") and node.module[13:] not in MODULES:
                door = import_module(node.module)
                names |= {getattr(getattr(door, alias.name, None), "__module__", "") for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value.split(":")[0])
    return frozenset(name for name in names if isinstance(name, str) and name.startswith("idecode_core."))


TEST_FILES = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
MODULES = {
    ".".join(path.relative_to(ROOT / "idecode_core").with_suffix("").parts): path
    for path in (ROOT / "idecode_core").rglob("*.py")
    if path.stem not in ("__init__", "__main__")
}


def imports(test: str, module: str) -> bool:
    """A test file imports a module, or the one that calls it."""
    used, whole = named_in(TEST_FILES[test]), f"idecode_core.{module}"
    return whole in used or any(
        whole in named_in(path) for caller, path in MODULES.items() if f"idecode_core.{caller}" in used
    )


def test_a_module_s_test_is_found_by_its_name() -> None:
    stems = Counter(module.split(".")[-1] for module in MODULES)
    for module in MODULES:
        room, stem = (["", *module.split(".")])[-2:]
        shared = stems[stem] > 1
        by_rule = [
            test
            for test in (f"test_{room}_{stem}", f"test_{stem}")
            if test in TEST_FILES and (not shared or imports(test, module))
        ]
        if module in IN_TESTS_OF:
            assert not by_rule, f"{module} has {by_rule[0]}.py: take it out of IN_TESTS_OF"
            test = IN_TESTS_OF[module]
            assert test in TEST_FILES, f"{test}.py, which IN_TESTS_OF names for {module}, is not there"
            assert imports(test, module), f"{test}.py imports neither {module} nor what calls it"
        else:
            assert by_rule, f"{module} has no test_{stem}.py nor test_{room}_{stem}.py: write it"
    assert set(IN_TESTS_OF) <= set(MODULES), f"{set(IN_TESTS_OF) - set(MODULES)} are no modules"
