"""Recipes: paper sizes take steps, names are listed, parts of datasets are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_loop import tiny_images, tiny_task

from idecode_core.errors import SettingError
from idecode_core.folder.record import (
    read_log,
)
from idecode_core.image.sets import ImageSet
from idecode_core.training.loop import train
from idecode_core.training.recipes import RECIPES, get_recipe, superclass


@pytest.mark.parametrize(
    "name",
    [
        "paper-cifar10-projective",
        "paper-svhn-projective",
        "paper-cifar10-resnet34",
        "paper-cifar10-densenet100",
        "paper-cifar10-one-class-3",
        "paper-cifar100-superclass-9",
    ],
)
def test_every_paper_size_recipe_takes_a_few_steps(name: str, tmp_path: Path) -> None:
    recipe = replace(get_recipe(name), batch=4)
    images = tiny_images(12, 32)
    if recipe.shows.classes:
        images = ImageSet("tiny-train", images.x, np.full(12, recipe.shows.classes[0]))
    train(tiny_task(recipe, images), tmp_path, epochs=1)
    (entry,) = read_log(tmp_path)
    assert np.isfinite([entry.loss, entry.validation_loss]).all()


def test_every_paper_size_recipe_is_of_one_of_the_kinds_that_were_stepped() -> None:
    names = {r.name for r in RECIPES.values() if r.name.startswith("paper-") and r.modality == "image"}
    one_class = {f"paper-cifar10-one-class-{c}" for c in range(10)}
    superclasses = {f"paper-cifar100-superclass-{c}" for c in range(20)}
    victims = {"paper-cifar10-resnet34", "paper-cifar10-densenet100"}
    assert names == {"paper-cifar10-projective", "paper-svhn-projective"} | victims | one_class | superclasses
    for group in (one_class, superclasses):
        kinds = [replace(RECIPES[name], name="") for name in group]
        assert len({repr(replace(kind, shows=replace(kind.shows, classes=()))) for kind in kinds}) == 1
    assert sorted(fine for c in range(20) for fine in superclass(c)) == list(range(100))


def test_a_wrong_recipe_name_lists_the_right_ones() -> None:
    with pytest.raises(SettingError) as error:
        get_recipe("cifar10")
    listed = str(error.value).partition("Expected one of ")[2].removesuffix(".").split(", ")
    expanded = set()
    for name in listed:
        first, _, last = name.partition("..")
        stem = first.rstrip("0123456789") if last else first
        expanded |= {f"{stem}{i}" for i in range(int(last) + 1)} if last else {first}
    assert expanded == set(RECIPES)  # pictures and sounds, in one sentence


def test_a_recipe_that_starts_from_a_detector_names_one_that_another_recipe_makes_with_the_same_backbone() -> (
    None
):
    starting = [r for r in RECIPES.values() if r.modality == "image" and r.shows.start_from]
    assert starting
    for recipe in starting:
        shows, first = recipe.shows, get_recipe(Path(recipe.shows.start_from).name)
        assert (first.dataset, first.shows.size) == (recipe.dataset, shows.size)
        model = first.shows.model
        assert (model.backbone, model.widths) == (shows.model.backbone, shows.model.widths)


@pytest.mark.parametrize(
    ("name", "dataset"), [("fashion-quick", "fashion"), ("cifar10-rotations", "cifar10")]
)
def test_a_small_part_of_a_dataset_makes_a_detector_of_the_whole(name: str, dataset: str) -> None:
    assert get_recipe(name).in_distribution == dataset
