"""What a command writes never takes away what a user had: not by a wrong path, a strange name, a link, or a full disk."""

# ruff: noqa: F811  fixtures of other files
import os
import resource
import shutil
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from small import random_images, small_scorer
from test_commands import run  # noqa: F401  a fixture
from test_pull import home, site  # noqa: F401  fixtures
from test_train_folder import own, small_network, write_pictures  # noqa: F401  fixtures

from idecode_core.detector import Detector
from idecode_core.errors import IdecodeError
from idecode_core.export.onnx import export_onnx
from idecode_core.files import write
from idecode_core.files.archives import zip_folder
from idecode_core.folder import pull as pulling
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.place import new_place, write_detector_folder
from idecode_core.report.notebook import Notebook
from paper.results import Section, write_section

Tree = dict[str, bytes]


def tree(root: Path) -> Tree:
    """Everything below a folder by its path: the bytes of files, where links lead, and "/" for folders."""
    found: Tree = {}
    for place, folders, files in os.walk(root):
        for path in (Path(place) / name for name in (*folders, *files)):
            content = os.fsencode(path.readlink()) if path.is_symlink() else b"/"
            found[str(path.relative_to(root))] = path.read_bytes() if path.is_file() else content
    return found


def tiny(seed: int = 0) -> Detector:
    return Detector.calibrate("tiny", small_scorer(seed=seed), random_images(6, seed=seed), n_max=2)


# --- the one function that writes, against a tree that must survive ---

DETECTORS = ("w/detectors/one", "w/detectors/two", "w/photos/three")
DETECTORS_OWN = ("config.json", "model.safetensors", "calibration.npz", "report.html", "scores/a.npz")
USERS = {
    "w/photos/a.png": b"a",
    "w/photos/deep/b.png": b"b",
    "w/detectors/one/notes/n.txt": b"notes",
    "w/detectors/one/scores/mine.txt": b"mine",
    "w/detectors/one/scores/deep/mine.npz": b"mine",
    "w/detectors/one/photos/c.png": b"c",
    "w/photos/.three.old/mine.txt": b"mine",
    "w/photos/.new.old/mine.txt": b"mine",
    "w/detectors/two/files.csv/mine.txt": b"a folder of such a name",
    "w/model/config.json": b'{"model_type": "resnet"}',
    "w/model/model.safetensors": b"of another program",
    "w/damaged/config.json": b"{",
    "w/list.csv": b"photos/a.png",
    "w/home/letter.txt": b"letter",
}
LINKS = {
    "w/to-one": "detectors/one",
    "w/to-photos": "photos",
    "w/to-itself": "to-itself",
    "w/to-new": "not-there",
    "w/detectors/one/out": "../../photos",
}
STEPS = (
    *("", ".", "..", "~", "-x", ".three.old", ".hidden", "a\0b", "a\nb", "a\\b", "c:", "x" * 300, "ä", "new", "not-there"),
    *("w", "photos", "deep", "detectors", "one", "two", "three", "model", "damaged", "empty", "home", "list.csv", "a.png"),
    *("to-one", "to-photos", "to-itself", "to-new", "out", "notes", "scores", "files.csv"),
)  # fmt: skip


def inside(steps: list[str]) -> str:
    """A relative path, for this is tried on a real disk."""
    return "/".join(steps).lstrip("/")


PATHS = st.lists(st.sampled_from(STEPS), min_size=1, max_size=4).map(inside) | st.sampled_from(
    [*DETECTORS, *USERS, *LINKS]
)


def build(root: Path) -> None:
    shutil.rmtree(root.parents[3], ignore_errors=True)
    for name in (*USERS, *(f"{one}/{file}" for one in DETECTORS for file in DETECTORS_OWN)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(USERS.get(name, b'{"scorer_sha256": "old"}'))
    for name, target in LINKS.items():
        (root / name).symlink_to(target)
    (root / "w" / "empty").mkdir()


@cache
def as_built(root: Path) -> Tree:
    build(root)
    return tree(root.parents[4])


@pytest.fixture(scope="module")
def ground(tmp_path_factory) -> Path:
    """Deep enough that `..` does not lead out of it."""
    return tmp_path_factory.mktemp("ground") / "1" / "2" / "3" / "4" / "5"


def fill(new: Path) -> None:
    for name in ("config.json", "model.safetensors", "card.md", "files.csv", "scores/b.npz"):
        (new / name).parent.mkdir(exist_ok=True)
        (new / name).write_bytes(b'{"scorer_sha256": "new"}')


@settings(max_examples=200, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    out=PATHS,
    inputs=st.lists(PATHS, max_size=2),
    replace=st.booleans(),
    here=st.sampled_from(["w", "w/photos", "w/detectors", "w/detectors/one"]),
    absolute=st.booleans(),
    exchanges=st.booleans(),
    checked=st.booleans(),
)
@example("photos", ["photos"], True, "w", False, True, True)
@example("w/photos", ["w/photos"], True, "w", True, True, False)
@example(".", [], True, "w", False, True, True)
@example("..", [], True, "w/detectors/one", False, True, False)
@example("w/detectors", [], True, "w", True, True, False)
@example("w/to-one", [], True, "w", True, True, True)
@example("w/detectors/one", ["w/detectors/one/photos"], True, "w", True, True, True)
@example("w/detectors/one", [], True, "w", True, False, True)
@example("w/detectors/two", [], True, "w", True, False, True)
@example("w/photos/three", ["w/photos"], True, "w", True, False, True)
@example("w/photos/new", [], False, "w", True, True, True)
@example("w/model", [], True, "w", True, True, True)
def test_whatever_is_named_nothing_but_the_detector_that_was_to_be_replaced_is_gone(
    ground, out, inputs, replace, here, absolute, exchanges, checked
):
    if tree(ground.parents[4]) != (before := as_built(ground)):  # an example before this one has written
        build(ground)
    above = f"{ground}/" if absolute else ""
    out, sources = above + out, [above + one for one in inputs]
    assert Path(os.path.normpath(ground / here / out)).is_relative_to(
        ground.parents[4]
    )  # this is a real disk
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ground / here)
        patch.setenv("HOME", str(ground / "w" / "home"))
        patch.setenv("IDECODE_CHECKPOINTS", str(ground / "w" / "detectors"))
        patch.setattr(write, "synchronise", lambda path: None)  # waits for the disk
        if not exchanges:
            patch.setattr(write, "exchanged", lambda a, b: False)
        try:
            place = new_place(Path(out), replace, sources) if checked else Path(out)
            write_detector_folder(place, fill, replace=replace, inputs=sources)
        except IdecodeError:
            assert tree(ground.parents[4]) == before
            return
        real = str(place.resolve().relative_to(ground.parents[4]))
        read = [Path(os.path.realpath(one)) for one in sources if "\0" not in one and len(one) < 300]
    after = tree(ground.parents[4])
    replaced = [one for one in DETECTORS if real == f"1/2/3/4/5/{one}"]
    assert after[f"{real}/card.md"] == b'{"scorer_sha256": "new"}'
    assert not replaced or replace
    assert not any(
        one == place.resolve() or place.resolve() in one.parents for one in read if one.exists() and replaced
    )
    own_files = {f"{real}/{name}" for name in DETECTORS_OWN if replaced}
    for name, content in before.items():
        assert name in own_files or after[name] == content, name
    for name in after.keys() - before.keys():
        assert name == real or name.startswith(f"{real}/") or real.startswith(f"{name}/"), name
    if replaced:
        assert f"{real}/scores/a.npz" not in after  # it belonged to the detector that is gone
        assert f"{real}/report.html" not in after


def test_every_detector_folder_is_written_by_the_one_function_that_knows_what_may_be_replaced():
    """`write_folder` is for `folder.place`, and for exports, which replace nothing."""
    top = Path(__file__).parents[2]
    callers = {
        path.relative_to(top).as_posix()
        for room in ("idecode_core", "ui", "pages")
        for path in (top / room).rglob("*.py")
        if "write_folder(" in path.read_text(encoding="utf-8").replace("write_detector_folder(", "")
    }
    assert callers == {
        "idecode_core/files/write.py",
        "idecode_core/folder/place.py",
        "idecode_core/export/onnx.py",
    }


# --- the doors, as a user opens them ---


@pytest.fixture
def ready(run, tmp_path, monkeypatch):
    """Photographs, a folder of detectors, and commands that run beside them."""
    write_pictures(tmp_path / "data" / "photos", random_images(44, 24))
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "detectors"))
    save_detector(tiny(), tmp_path / "detectors" / "one")
    save_detector(tiny(), tmp_path / "detectors" / "two")
    return run


@pytest.mark.parametrize(
    "command",
    [
        "train data/photos --out data/photos",
        "train data/photos --out data/photos --replace",
        "train data/photos --out detectors/../data --replace",
        "train data/photos --out . --replace",
        "train data/photos --out .. --replace",
        "train data/photos --out ./ --replace",
        "train data/photos --out data/../detectors --replace",
        "train data/photos --out detectors/one/.. --replace",
        "train data/photos --out one",
        "train data/../data/.. --replace",
        "train fashion-quick --out data/photos --replace",
        "train fashion-quick --out . --replace",
        "calibrate data/photos --out data/photos --detector one",
        "calibrate data/photos --out one --detector one --replace",
        "calibrate data/photos --out .. --detector one --replace",
        "merge one two --out one --replace",
        "merge one two --out data/photos --replace",
        "paper rival vim --out data/photos --replace",
        "export --onnx --detector one --out data/photos",
        "export --onnx --detector one --out .",
    ],
)
def test_no_command_takes_the_users_folders(ready, tmp_path, command):
    before = tree(tmp_path)
    status, _, err = ready(*command.split())
    assert (status, err.count("\n")) == (2, 1), err
    assert tree(tmp_path) == before


def test_an_export_by_the_library_replaces_nothing_either(tmp_path):
    (tmp_path / "photo.png").write_bytes(b"mine")
    with pytest.raises(IdecodeError, match="it is there already, and is not empty"):
        export_onnx(tiny(), tmp_path)
    assert tree(tmp_path) == {"photo.png": b"mine"}


@pytest.mark.parametrize(
    "ending", ["/?id=mine.zip", "/", "", "/..", "/../", "/.hidden.zip", "/a/..zip", "/%00.zip#x/.."]
)
def test_an_address_without_a_name_takes_no_detector(site, home, ending, tmp_path):
    address, folder = site
    shutil.copytree(folder / "tiny", home / "precious")
    (folder / "index.html").write_bytes(
        zip_folder(folder / "tiny", "tiny")
    )  # whatever is asked for is a detector
    before = tree(tmp_path)
    with pytest.raises(IdecodeError):
        pulling.pull(f"{address}{ending}", report=lambda _: None)
    assert tree(tmp_path) == before


def test_pull_leaves_what_is_there_and_replaces_a_detector_when_told(site, home, run, tmp_path):
    address, folder = site
    (folder / "mine.zip").write_bytes(zip_folder(folder / "tiny", "tiny"))
    (tmp_path / "existing").mkdir()
    (tmp_path / "existing" / "photo.png").write_bytes(b"mine")
    save_detector(tiny(seed=1), home / "mine")
    (home / "mine" / "notes.txt").write_text("notes")
    before = tree(tmp_path)
    status, _, err = run("pull", f"{address}/mine.zip", "--out", "existing/")
    assert (status, "holds other files and no detector" in err) == (2, True)
    status, _, err = run("pull", f"{address}/mine.zip", "--out", home / "mine")
    assert (status, "add --replace" in err) == (2, True)
    assert tree(tmp_path) == before
    status, _, err = run("pull", f"{address}/mine.zip", "--out", home / "mine", "--replace")
    assert status == 0, err
    assert (home / "mine" / "notes.txt").read_text() == "notes"
    assert (home / "mine" / "config.json").read_bytes() == (folder / "tiny" / "config.json").read_bytes()


def test_training_again_keeps_the_users_notes(run, own, small_network, tmp_path):
    arguments = ("train", "own", "--ood", "textures-sample", "--out", "out/mine")
    assert run(*arguments)[0] == 0
    (tmp_path / "out" / "mine" / "notes").mkdir()
    (tmp_path / "out" / "mine" / "notes" / "a.txt").write_text("mine")
    (tmp_path / "out" / "mine" / "scores" / "remarks.txt").write_text("mine too")
    status, _, err = run(*arguments)
    assert (status, "add --replace" in err) == (2, True)
    status, _, err = run(*arguments, "--replace", "--seed", 1)
    assert status == 0, err
    assert (tmp_path / "out" / "mine" / "notes" / "a.txt").read_text() == "mine"
    assert (tmp_path / "out" / "mine" / "scores" / "remarks.txt").read_text() == "mine too"
    assert load_detector("out/mine", "cpu").calibration.seed == 1


def test_train_calibrate_merge_rival_and_pull_put_a_bare_name_at_the_same_place(monkeypatch, tmp_path, site):
    """Also where only the package's own detectors are there: these then lie beside the new one."""
    from idecode_core.folder import settings as places

    monkeypatch.delenv("IDECODE_CHECKPOINTS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(places, "CHECKPOINTS", tmp_path / "no checkout")
    monkeypatch.setattr(places, "BUNDLED", tmp_path / "package")
    save_detector(tiny(), tmp_path / "package" / "brought")
    expected = tmp_path / "share" / "idecode" / "detectors"
    assert new_place(Path("mine")) == expected / "mine"
    assert not expected.exists()  # checked, and nothing is written yet
    save_detector(tiny(), new_place(Path("mine")), replace=False)
    assert sorted(path.name for path in expected.iterdir()) == ["brought", "mine"]
    assert load_detector("brought", "cpu").name == "tiny"
    assert pulling.pull("tiny", site[0], out=Path("pulled"), report=lambda _: None) == expected / "pulled"


# --- places that cannot be written, and full disks ---


@pytest.mark.parametrize(
    "command", ["train data/photos", "calibrate data/photos --detector one", "merge one two"]
)
@pytest.mark.parametrize(
    "place", ["data/photos/000.png/mine", "/proc/mine", f"data/{'x' * 250}", "read-only"]
)
def test_a_place_that_cannot_be_written_is_known_before_any_work(
    ready, tmp_path, monkeypatch, command, place
):
    from idecode_core.training import calibrate_folder, merge, train_folder

    def work(*_, **__):
        raise AssertionError("work began")

    for module, name in (
        (train_folder, "scan"),
        (calibrate_folder, "load_detector"),
        (merge, "load_detector"),
    ):
        monkeypatch.setattr(module, name, work)
    if place == "read-only":

        def refuse(*_, **__):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(write.tempfile, "mkdtemp", refuse)
    before = tree(tmp_path)
    status, _, err = ready(*command.split(), "--out", place)
    assert (status, err.count("\n")) == (2, 1), err
    assert "Could not write" in err
    assert tree(tmp_path) == before


@contextmanager
def small_disk(most: int):
    """Files of more than so many bytes fail as on a full disk: the system's own error, from every library."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_sentence_whichever_library_meets_it(tmp_path):
    save_detector(tiny(), tmp_path / "old")
    before = tree(tmp_path)

    def copies(new: Path) -> None:
        shutil.copytree(tmp_path / "old", new, dirs_exist_ok=True)

    ways = {
        "safetensors": lambda: save_detector(tiny(seed=1), tmp_path / "old"),
        "shutil": lambda: write_detector_folder(tmp_path / "new", copies, replace=False),
        "numpy": lambda: write.write_npz(tmp_path / "a.npz", {"x": np.random.default_rng(0).random(9999)}),
        "text": lambda: write.write_text(tmp_path / "a.txt", "x" * 9999),
    }
    for name, way in ways.items():
        with small_disk(4000), pytest.raises(IdecodeError) as caught:
            way()
        assert str(caught.value).partition(": ")[2].startswith("File too large. Nothing was changed"), name
    assert tree(tmp_path) == before


# --- single files ---


def test_certify_writes_over_its_own_tables_only(run, tmp_path):
    for name in ("normal.csv", "new.csv"):
        (tmp_path / name).write_text("\n".join(map(str, range(1, 41))))
    (tmp_path / "letter.txt").write_text("Dear Ada,")
    (tmp_path / "link.csv").symlink_to("new.csv")
    (tmp_path / "folder").mkdir()
    before = tree(tmp_path)
    for out in ("normal.csv", "new.csv", "letter.txt", "link.csv", "folder", "letter.txt/p.csv"):
        status, shown, err = run("certify", "normal.csv", "--test", "new.csv", "--out", out)
        assert (status, shown, err.count("\n")) == (2, "", 1), out  # before any work
        assert tree(tmp_path) == before
    for _ in range(2):  # again into the same file
        assert run("certify", "normal.csv", "--test", "new.csv", "--out", "p.csv")[0] in (0, 1)
    found = tree(tmp_path)
    table = found.pop("p.csv").decode().splitlines()
    assert (found, table[0], len(table)) == (before, "score,p_value,is_ood", 41)
    # its own table as an input stays too
    status, _, _ = run("certify", "normal.csv", "--test", "p.csv", "--column", "score", "--out", "p.csv")
    assert (status, (tmp_path / "p.csv").read_text().splitlines()) == (2, table)


def test_results_keep_what_others_wrote(tmp_path):
    section = Section("false-detections", "F", "new")
    (tmp_path / "photo.md").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "mine.md").write_text("My notes.\n")
    for _ in range(2):
        write_section(tmp_path / "mine.md", section, ())
    assert (tmp_path / "mine.md").read_text().startswith("My notes.\n")
    with (tmp_path / "mine.md").open("a") as file:
        file.write("A remark below.\n")
    before = tree(tmp_path)
    for name, words in (("photo.md", "is no text"), ("mine.md", r"would be lost \(A remark below.\)")):
        with pytest.raises(IdecodeError, match=words):
            write_section(tmp_path / name, section, ())
    assert tree(tmp_path) == before


def test_a_notebook_that_somebody_has_changed_is_kept_when_it_is_written_again(tmp_path):
    first = Notebook("inspection", "{1}", {"inspection.npz": b"1"})
    for _ in range(2):
        assert first.write_into(tmp_path) == tmp_path / "inspection.ipynb"
    assert tree(tmp_path) == {"inspection.ipynb": b"{1}", "inspection.npz": b"1"}
    (tmp_path / "inspection.ipynb").write_text("{my remarks}")
    Notebook("inspection", "{2}", {"inspection.npz": b"1"}).write_into(tmp_path)
    Notebook("inspection", "{3}", {"inspection.npz": b"1"}).write_into(tmp_path)
    assert tree(tmp_path) == {
        "inspection.ipynb": b"{3}",
        "inspection (1).ipynb": b"{my remarks}",
        "inspection (2).ipynb": b"{2}",
        "inspection.npz": b"1",
    }


def test_a_full_disk_that_no_writer_expected_is_no_traceback(run, monkeypatch):
    from paper import experiments

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(experiments, "write_results", full)
    status, _, err = run("reproduce", "all")
    assert (status, err.count("\n")) == (2, 1)
    assert "No space left on device" in err
