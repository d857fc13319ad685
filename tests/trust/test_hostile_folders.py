"""Detector folders that are foreign, damaged, hostile or half-written: never a wrong answer, never a lost detector."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from small import random_images, small_model, small_scorer

from idecode_core.detector import Detector
from idecode_core.errors import CheckpointError, IdecodeError
from idecode_core.files import write
from idecode_core.folder import detector as store
from idecode_core.folder.detector import load_detector, save_detector
from idecode_core.folder.listing import list_folders
from idecode_core.folder.record import read_log, read_split
from idecode_core.folder.settings import read_settings
from idecode_core.folder.shelf import ScoreSet, write_scores
from idecode_core.training.recipes import get_recipe
from idecode_core.training.run_state import RunState
from idecode_core.transforms import Rotations, SmallAffine, SpecAugment, build_transforms, transform_settings


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A small detector with stored scores, a split and a training record; never changed by a test."""
    folder = tmp_path_factory.mktemp("made") / "small"
    detector = Detector.calibrate("small", small_scorer(), random_images(7, seed=4), n_max=3, summary="noise")
    beside = {
        "split.npz": lambda path: np.savez(
            path, proper=np.arange(9), validation=np.arange(9, 10), calibration=np.arange(10, 17)
        ),
        "training.json": lambda path: path.write_text(json.dumps({"recipe": "none"})),
    }
    save_detector(detector, folder, beside=beside)
    return folder


@pytest.fixture
def folder(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "root" / "small")
    return tmp_path / "root" / "small"


def edit_config(folder: Path, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def scores(seed: int = 0, is_ood: bool = False, name: str = "inside") -> ScoreSet:
    return ScoreSet(name, name, is_ood, np.random.default_rng(seed).random((6, 100)).astype(np.float32))


@pytest.mark.parametrize("name", ["split.npz", "training.json"])
def test_a_split_or_a_training_record_of_another_detector_is_refused(folder, name):
    """An old detector with a new split would undermine the check that points were held out."""
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(CheckpointError, match=f"{name} is not the file that was saved with this detector"):
        load_detector(folder, "cpu")
    (broken,) = list_folders(folder.parent).broken
    assert name in broken.sentence


def test_a_foreign_calibration_is_seen_by_the_listing_too(folder, tmp_path):
    other = Detector.calibrate("small", small_scorer(), random_images(7, seed=9), n_max=3)
    save_detector(other, tmp_path / "other")
    shutil.copy(tmp_path / "other" / "calibration.npz", folder)
    assert list_folders(folder.parent).detectors == []
    assert "not the file that was saved" in list_folders(folder.parent).broken[0].sentence


def test_temporary_names_match_no_reader_and_old_ones_are_removed(folder, monkeypatch):
    seen: list[str] = []
    path = folder / "scores" / "[x].npz"
    write.write_atomically(path, lambda temporary: seen.append(temporary.name) or temporary.write_bytes(b"1"))
    assert not Path(seen[0]).match("*.npz")
    assert not Path(seen[0]).match("*.json")
    left = path.with_name(f".{path.name}.dead{write.PART}")
    left.write_bytes(b"half")
    write.write_atomically(path, lambda temporary: temporary.write_bytes(b"2"))
    assert left.exists()  # it may belong to a process that still writes
    os.utime(left, (0, 0))
    write.write_atomically(path, lambda temporary: temporary.write_bytes(b"3"))
    assert not left.exists()


def test_a_folder_that_is_being_written_is_not_listed(folder):
    shutil.copytree(folder, folder.parent / f".small.abcd{write.PART}")
    listed = list_folders(folder.parent)
    assert [entry.folder for entry in listed.detectors] == [folder]
    assert listed.broken == []


def test_after_a_kill_between_the_two_renames_the_old_detector_is_found_again(folder):
    """On systems that cannot exchange two folders in one step."""
    folder.rename(folder.with_name(f".small{write.OLD}"))
    assert [entry.name for entry in list_folders(folder.parent).detectors] == ["small"]
    assert load_detector(folder, "cpu").name == "small"


def test_a_folder_of_other_files_is_never_replaced_by_a_detector(folder, tmp_path):
    """`calibrate photos/ --out photos/` would have replaced the photos."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.png").write_bytes(b"mine")
    with pytest.raises(CheckpointError, match="holds other files and no detector"):
        save_detector(load_detector(folder, "cpu"), tmp_path / "photos")
    assert (tmp_path / "photos" / "one.png").read_bytes() == b"mine"
    with pytest.raises(IdecodeError, match="a file is in its place"):
        save_detector(load_detector(folder, "cpu"), tmp_path / "photos" / "one.png")
    assert (tmp_path / "photos" / "one.png").read_bytes() == b"mine"


def test_notes_in_a_detector_folder_stay_when_the_detector_is_replaced(folder):
    (folder / "notes").mkdir()
    (folder / "notes" / "a.txt").write_text("mine")
    (folder / "README.txt").write_text("mine too")
    detector = load_detector(folder, "cpu")
    write_scores(folder, scores(), read_settings(folder).scorer_sha256)
    save_detector(detector, folder)
    assert (folder / "notes" / "a.txt").read_text() == "mine"
    assert (folder / "README.txt").read_text() == "mine too"
    assert not (folder / "scores").exists()  # they belong to the detector that is gone
    assert not (folder / "training.json").exists()


def test_a_link_to_a_detector_folder_stays_a_link(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    save_detector(load_detector(folder, "cpu"), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load_detector(tmp_path / "link", "cpu").name == "small"
    assert [path.name for path in folder.parent.iterdir()] == ["small"]


LIES = {
    "no name": {"name": None},
    "empty name": {"name": " "},
    "name of two lines": {"name": "a\nb"},
    "name that moves the cursor": {"name": "\x1b[2Jgone"},
    "name of a megabyte": {"name": "x" * 2**20},
    "k as text": {"k": "5000"},
    "k of 10^30": {"k": 10**30},
    "k as a truth value": {"k": True},
    "n_max 0": {"n_max": 0},
    "n_max of a million": {"n_max": 10**6},
    "modality": {"modality": "smell"},
    "summary": {"summary": ["a"]},
    "files": {"files": {"calibration.npz": 3}},
    "scorer": {"scorer": []},
    "classes as a number": {"scorer": {"kind": "image", "classes": 5}},
    "classes of numbers": {"scorer": {"kind": "image", "classes": [1, 2]}},
    "transforms": {"scorer": {"kind": "image", "transforms": [1]}},
    "names": {"scorer": {"kind": "merged", "names": 5}},
}


@pytest.mark.parametrize("lie", LIES)
def test_one_bad_folder_is_one_line_and_the_others_are_listed(folder, lie):
    """Deep JSON, a missing name, k as text: each broke every page for everyone."""
    shutil.copytree(folder, folder.parent / "bad")
    edit_config(folder.parent / "bad", **LIES[lie])
    listed = list_folders(folder.parent)
    assert [entry.folder.name for entry in listed.detectors] == ["small"]
    (broken,) = listed.broken
    assert broken.folder.name == "bad"
    assert "\n" not in broken.sentence
    assert "\x1b" not in broken.sentence
    assert len(broken.sentence) < 1000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 1, "k": ' + "9" * 10_000 + "}", "\ud800", "{"])
def test_a_config_that_no_program_would_write_is_one_line(folder, text):
    (folder / "config.json").write_bytes(text.encode(errors="surrogatepass"))
    (broken,) = list_folders(folder.parent).broken
    assert "config.json cannot be read" in broken.sentence


def hostile(folder: Path, change) -> None:
    """Settings of a stranger's own choice, with the right hash for them."""
    config = json.loads((folder / "config.json").read_text())
    change(config["scorer"])
    tensors = {name: store.restore(t) for name, t in load_file(folder / "model.safetensors").items()}
    config["scorer_sha256"] = store._hash(config["scorer"], tensors)
    with np.load(folder / "calibration.npz") as arrays:
        np.savez(folder / "calibration.npz", **{**arrays, "scorer": np.array(config["scorer_sha256"])})
    (folder / "config.json").write_text(json.dumps({**config, "files": {}, "format": 1}))


@pytest.mark.parametrize(
    "change",
    [
        *(
            lambda s, size=size: s["preprocessing"].update(size=size)
            for size in (0, -4, "16", 30_000, 16.0, None)
        ),
        lambda s: s["model"].update(widths=[30_000, 30_000, 30_000]),  # 65 GB of weights
        lambda s: s["model"].update(widths=[]),
        lambda s: s["model"].update(outputs=10**9),
        lambda s: s["model"].update(hidden=10**9),
        lambda s: s["transforms"].update(jitter=10**9),
        lambda s: s["transforms"].update(jitter="ten"),
        lambda s: s["transforms"].update(jitter=-1),
        lambda s: s.update(transforms={"name": "small_affine", "variants": 10**6}),
        lambda s: s.update(transforms={"name": "small_affine", "degrees": float("nan")}),
        lambda s: s.update(transforms={"name": "specaugment", "time_masks": 10**9}),
        lambda s: s.update(classes=[["a"]]),
        lambda s: s.update(base_ncm=["a"]),
        lambda s: s.update(base_ncm="none"),
    ],
)
def test_settings_that_lie_are_refused_at_loading_even_with_the_right_hash(folder, change):
    hostile(folder, change)
    with pytest.raises(CheckpointError) as caught:
        load_detector(folder, "cpu")
    assert "\n" not in str(caught.value)


def test_honest_settings_with_the_right_hash_are_accepted(folder):
    """What the test before changes is refused for what it changes, and for nothing else."""
    hostile(folder, lambda s: None)
    assert load_detector(folder, "cpu").detect(random_images(2), n=2, epsilon=0.3).p_values.shape == (2,)


@pytest.mark.parametrize(
    "transforms", [Rotations(), Rotations("all", 5), SmallAffine(), SpecAugment(32, 16, 4, 8)]
)
def test_transform_sets_come_back_from_their_settings(transforms):
    assert build_transforms(json.loads(json.dumps(transform_settings(transforms)))) == transforms


def test_a_calibration_bomb_is_refused_before_it_is_unpacked(folder, monkeypatch):
    """292 KB took 5.5 GB."""
    with np.load(folder / "calibration.npz") as arrays:
        np.savez_compressed(folder / "calibration.npz", **{**arrays, "score_vectors": np.zeros((2**16, 3))})
    monkeypatch.setattr("idecode_core.files.read.MOST_BYTES", 2**20)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("room was made"))
    with pytest.raises(CheckpointError, match="unpacks to"):
        load_detector(folder, "cpu")
    assert "do not belong together" in list_folders(folder.parent).broken[0].sentence


def changed(folder, change) -> None:
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_foreign_calibration_is_refused_also_without_the_list_of_hashes(folder):
    with np.load(folder / "calibration.npz") as arrays:
        np.savez(
            folder / "calibration.npz", **{**arrays, "score_vectors": np.zeros_like(arrays["score_vectors"])}
        )
    for change in (
        lambda config: config.pop("files"),
        lambda config: config.update(files={}),
        lambda config: config.update(files={"split.npz": "0" * 64}),
    ):
        changed(folder, change)
        with pytest.raises(CheckpointError, match="expected files to list the calibration's hash"):
            load_detector(folder, "cpu")


def test_a_folder_of_the_first_format_may_be_without_the_list(folder):
    changed(folder, lambda config: config.update(format=1) or config.pop("files"))
    assert load_detector(folder, "cpu").name


@pytest.mark.parametrize("seed", [np.inf, np.nan, "x"])
def test_a_seed_that_is_no_number_is_one_sentence(folder, seed):
    """With fitting hashes it stopped Home for everyone."""
    with np.load(folder / "calibration.npz") as arrays:
        np.savez(folder / "calibration.npz", **{**arrays, "seed": np.array(seed)})
    digest = hashlib.sha256((folder / "calibration.npz").read_bytes()).hexdigest()
    changed(folder, lambda config: config["files"].update({"calibration.npz": digest}))
    with pytest.raises(CheckpointError, match=r"calibration\.npz"):
        load_detector(folder, "cpu")


def test_a_modality_that_is_not_the_scorer_s_is_one_sentence(folder):
    changed(folder, lambda config: config.update(modality="audio"))
    assert "expected modality to be image" in list_folders(folder.parent).broken[0].sentence
    with pytest.raises(CheckpointError, match="expected modality to be image"):
        load_detector(folder, "cpu")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_a_damaged_split_is_one_sentence(folder, content):
    (folder / "split.npz").write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot be read as the split of a training run"):
        read_split(folder)


def test_a_device_in_the_place_of_a_file_is_refused(folder):
    (folder / "training.json").unlink()
    (folder / "training.json").symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match=r"training.json cannot be read: not a plain file"):
        load_detector(folder, "cpu")


@settings(max_examples=int(os.environ.get("IDECODE_FUZZ", "60")), deadline=None)
@given(st.data())
def test_no_change_of_any_file_gives_a_traceback_or_another_answer(made, data):
    """Bytes of any of the three files changed, cut or added: refused with a sentence, or the same detector as before."""
    target = made.parent / f"fuzzed-{os.getpid()}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made, target)
    path = target / data.draw(
        st.sampled_from(["config.json", "calibration.npz", "model.safetensors", "split.npz"])
    )
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    listed = list_folders(made.parent)
    assert len(listed.detectors) + len(listed.broken) == 2
    try:
        loaded = load_detector(target, "cpu")
    except CheckpointError as error:
        refusal = str(error)
    else:
        refusal = ""
        original = load_detector(made, "cpu")
        assert np.array_equal(loaded.calibration.score_vectors, original.calibration.score_vectors)
        images = random_images(1)
        assert np.array_equal(loaded.score_vectors(images, n=2), original.score_vectors(images, n=2))
    finally:
        shutil.rmtree(target)
    assert "\n" not in refusal


def test_a_read_only_folder_is_one_sentence_and_the_detector_stays(folder, monkeypatch):
    def refuse(*arguments, **named):
        raise PermissionError(13, "Permission denied")

    detector = load_detector(folder, "cpu")
    monkeypatch.setattr(write.tempfile, "mkdtemp", refuse)
    with pytest.raises(IdecodeError, match=r"Permission denied. Nothing was changed"):
        save_detector(detector, folder)
    monkeypatch.undo()
    assert load_detector(folder, "cpu").name == "small"


def test_weights_of_another_shape_are_named(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["head.bias"] = tensors["head.bias"][:2].clone()
    save_file(tensors, folder / "model.safetensors")
    hostile(folder, lambda s: None)
    with pytest.raises(CheckpointError, match=r"head.bias of shape \(4,\), and the weights have \(2,\)"):
        load_detector(folder, "cpu")


@pytest.mark.parametrize("damage", ["cut", "no metadata", "weights missing", "no number", "gone"])
def test_a_damaged_run_state_or_log_is_one_sentence(tmp_path, damage):
    model, average = small_model(), small_model(seed=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    state = RunState(get_recipe("fashion-quick"), 2, model, average, optimizer)
    state.save(tmp_path, 1)
    assert state.load(tmp_path) == 1
    path = tmp_path / "state.safetensors"
    tensors = load_file(path)
    metadata = {"recipe": repr(state.recipe), "epochs": "2", "done": "1"}
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:2000])
    elif damage == "no metadata":
        save_file(tensors, path)
    elif damage == "weights missing":
        save_file({name: t for name, t in tensors.items() if "head" not in name}, path, metadata)
    elif damage == "no number":
        save_file(tensors, path, {**metadata, "done": "²"})
    else:
        path.unlink()
    with pytest.raises(IdecodeError, match="no-resume") as caught:
        state.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"{", b"[1]\n", b'{"epoch": 0}\n', b"[" * 10**5])
def test_a_missing_or_damaged_log_is_one_sentence(tmp_path, content):
    if content is not None:
        (tmp_path / "log.jsonl").write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot be read as the log of a training run"):
        read_log(tmp_path)
