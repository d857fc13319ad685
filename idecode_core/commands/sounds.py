"""The parts of `train` and `score-sets` that are about sounds."""

from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from idecode_core.commands.inputs import progress_bar


def train_sounds(
    name: str, data_root: Path | None, device: str | None, epochs: int | None, resume: bool, out: Path
) -> None:
    """Train an audio recipe, calibrate and save; the run is kept in runs/ under the detector folder's name."""
    from idecode_core.audio_card import write_audio_card
    from idecode_core.audio_finish import make_audio_detector
    from idecode_core.audio_parts import load_parts
    from idecode_core.audio_recipes import get_audio_recipe
    from idecode_core.scoring import choose_device

    recipe = get_audio_recipe(name)
    parts = load_parts(recipe, data_root)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, console=Console(stderr=True)) as bar,
        progress_bar("calibrating", len(parts.calibration)) as scored,
    ):
        task = bar.add_task("", total=epochs or recipe.epochs, epoch="", loss="")

        def step(epoch: int, step: int, steps: int, loss: float) -> None:
            bar.update(task, completed=epoch + (step + 1) / steps, epoch=f"{epoch + 1}", loss=f"{loss:.3f}")

        made = make_audio_detector(
            recipe,
            parts,
            Path("runs") / out.name,
            out,
            device=choose_device(device),
            epochs=epochs,
            resume=resume,
            progress=step,
            scored=scored,
        )
    write_audio_card(out)
    typer.echo(
        f"{out}: trained and calibrated on {made.calibration.k:,} held-out clips. Use it with --detector {out}"
    )


def score_sound_sets(folder: Path, data_root: Path | None) -> None:
    """Score the test sets of the recipe that made this folder, and write its card anew."""
    from idecode_core.audio_card import read_recipe, write_audio_card
    from idecode_core.audio_parts import load_parts
    from idecode_core.audio_recipes import get_audio_recipe
    from idecode_core.experiments.audio_scores import score_audio_sets

    recipe = get_audio_recipe(str(read_recipe(folder)["recipe"]["name"]))
    parts = load_parts(recipe, data_root)
    test_name = f"{recipe.dataset}-{recipe.part}" if recipe.part else f"{recipe.dataset}-test"
    score_audio_sets(
        folder, parts, test_name, report=lambda name, _, points: typer.echo(f"{name}: {points} clips")
    )
    write_audio_card(folder)
