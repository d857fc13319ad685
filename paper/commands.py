"""`idecode paper`: sets are scored and attacked, rivals fitted, tables and figures written. For whoever checks our numbers.

Importing must be quick: whatever needs torch is imported inside of the functions.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING, Annotated

import typer

from idecode_core.cli.inputs import DataRoot, NewDetector, Replace, progress_bars
from idecode_core.errors import CheckpointError, SettingError

if TYPE_CHECKING:
    from idecode_core.folder.settings import FolderSettings
    from idecode_core.quality.score_sets import SetToScore


def attack_sets(
    victim: Annotated[
        str, typer.Argument(help="A detector whose network names classes.", show_default=False)
    ],
    attacks: Annotated[
        list[str] | None, typer.Option("--attack", help="fgsm, bim, deepfool, cw; all of them if left out.")
    ] = None,
    detectors: Annotated[
        list[str] | None,
        typer.Option("--detector", help="Instead: PGD on the victim and this detector together."),
    ] = None,
    points: Annotated[
        int, typer.Option(min=1, help="Pictures per set, all named right by the victim.")
    ] = 1000,
    data_root: DataRoot = None,
) -> None:
    """Attack test pictures of the victim's dataset at the paper's settings and keep them, unrounded, in runs/attacked/.

    What is stored is left alone, so a stopped run goes on where it was, and a larger --points adds to it.

    \b
    Examples:
      python -m idecode_core paper attack-sets cifar10-invariance --data-root data
      python -m idecode_core paper attack-sets cifar10-invariance --detector cifar10-rotations --points 200
    """
    from idecode_core.attacks import ATTACKS, Victim
    from idecode_core.attacks.on_detector import NAME
    from idecode_core.folder.detector import load_detector
    from idecode_core.image.sets import load_images
    from paper.attack_sets import make_attacked_set

    if attacks and detectors:
        raise SettingError(
            "Give either --attack or --detector: one run attacks the victim alone or both together."
        )
    source = load_detector(victim)
    against = Victim.from_detector(source)
    images = load_images(f"{source.dataset}-test", data_root)
    names = attacks or [name for name, kind in ATTACKS.items() if not kind.on_detector]
    wanted = (
        [(NAME, load_detector(name)) for name in detectors] if detectors else [(name, None) for name in names]
    )
    with progress_bars() as report:
        for name, detector in wanted:
            part = name if detector is None else f"{name} ({detector.name})"
            made = make_attacked_set(
                against,
                images,
                name,
                points,
                detector=detector,
                report=lambda done, part=part: report(part, done, points),  # type: ignore[misc]
            )
            typer.echo(f"{len(made.indices):,} pictures. {made.result.summary()}")


RUNS = Path("runs/one-class")
DEFAULT = "0,1,7"


def one_class(
    methods: Annotated[
        str, typer.Option(help="idecode or rivals by name, with commas between them; a wrong one lists them.")
    ] = "idecode",
    classes: Annotated[
        str, typer.Option(help="Classes of CIFAR-10 by number, with commas between them, or all.")
    ] = DEFAULT,
    superclasses: Annotated[
        bool, typer.Option("--superclasses", help="Also the four superclasses of CIFAR-100.")
    ] = False,
    checkpoints: Annotated[Path, typer.Option(help="The scores go to one-class/ in this folder.")] = Path(
        "checkpoints"
    ),
    seed: Annotated[
        int, typer.Option(min=0, help="Of the training; the pictures are the same for every seed.")
    ] = 0,
    budget: Annotated[int, typer.Option(min=1, help="So many times the usual training steps.")] = 1,
    data_root: DataRoot = None,
) -> None:
    """Train on one class, score its test pictures and those of the others, and store the scores.

    What is stored already is left alone, so a stopped run goes on where it was. Allow some minutes per class and method.

    \b
    Examples:
      python -m idecode_core paper one-class --classes all --superclasses
      python -m idecode_core paper one-class --methods rotnet,csi --classes 7 --data-root data
      python -m idecode_core paper one-class --methods idecode,rotnet --seed 1
      python -m idecode_core paper one-class --methods goad --classes 7 --budget 10
    """
    from paper.one_class_scores import score_all
    from paper.one_class_stored import CIFAR10, CIFAR100

    names = [CIFAR10[number] for number in numbers(classes, len(CIFAR10))]
    names += list(CIFAR100.values()) if superclasses else []
    score_all(
        names,
        methods.split(","),
        root=checkpoints,
        data_root=data_root,
        runs=RUNS,
        report=typer.echo,
        seed=seed,
        budget=budget,
    )
    typer.echo("All of it is stored. Now: python -m idecode_core reproduce one-class")


def numbers(text: str, count: int) -> list[int]:
    """ "0,1,7" or "all" -> class numbers below `count`."""
    if text == "all":
        return list(range(count))
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) < count for part in parts):
        raise SettingError(
            f"Classes must be numbers from 0 to {count - 1} with commas between them, or all, got {text!r}; correct --classes."
        )
    return [int(part) for part in parts]


def rival(
    method: Annotated[str, typer.Argument(help="A rival; a wrong name lists them.", show_default=False)],
    out: NewDetector,
    replace: Replace = False,
    data_root: DataRoot = None,
) -> None:
    """Make a rival method a detector: fitted on the training data of its network, calibrated on held-out points.

    From then on it is a detector as any other: in the app, in `detect`, `merge` and `score`, with the same bound.

    \b
    Example:
      python -m idecode_core paper rival vim --out checkpoints/vim
    """
    from idecode_core.detector import Detector
    from idecode_core.folder.detector import save_detector
    from idecode_core.folder.place import new_place
    from idecode_core.folder.settings import find_detector
    from idecode_core.report.card import write_card
    from paper.score_rivals import RIVALS, fit, open_network

    if method not in RIVALS:
        raise SettingError(f"No rival is called {method!r}; expected one of {', '.join(RIVALS)}.")
    folder = find_detector(RIVALS[method].network)
    out = new_place(out, replace, [folder])
    network = open_network(folder, data_root, RIVALS[method].member)
    made = Detector.calibrate(
        out.name,
        fit(RIVALS[method], network),
        network.parts.calibration.samples,
        summary=network.settings.summary,
        dataset=network.settings.dataset,
    )
    # which points its network has not seen: `merge` asks for it
    known = [folder / name for name in ("training.json", "split.npz") if (folder / name).is_file()]
    beside = {path.name: partial(copyfile, path) for path in known}
    save_detector(made, out, beside=beside, replace=replace)
    write_card(out)
    typer.echo(f"{out}: {RIVALS[method].title}, calibrated on {made.calibration.k:,} held-out images.")


def score_sets(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Detectors, by folder or by name; rivals by name, or `rivals` for all; `attacks`.",
            show_default=False,
        ),
    ],
    data_root: DataRoot = None,
    id_points: Annotated[int, typer.Option(min=1, help="At most this many iD test points.")] = 2000,
    ood_points: Annotated[int, typer.Option(min=1, help="At most this many points of each OOD set.")] = 1000,
    draws: Annotated[
        int, typer.Option(min=20, help="Draws per point; every 20 are one run of the tables.")
    ] = 100,
    without_familiarity: Annotated[
        bool, typer.Option(help="Also store scores of the base NCM less familiarity, to compare.")
    ] = False,
    attacked: Annotated[Path, typer.Option(help="Where attack-sets has put attacked pictures.")] = Path(
        "runs/attacked"
    ),
    attacked_points: Annotated[
        int, typer.Option(min=10, help="Attacked pictures per victim, from the first.")
    ] = 1000,
) -> None:
    """Score test sets and store the score vectors, for every table and figure.

    With a detector: some draws per point, beside it; writes its card again. With rivals: other methods on the networks of our
    detectors, and what each costs; `reproduce rivals` and the Evaluate page read them. With `attacks`: attacked pictures, by
    every detector of CIFAR-10 and the paper's rivals, which are fitted first; `reproduce adversarial` reads them. What is stored
    is left alone, so a stopped run goes on where it was. Numbers of points are for pictures; of sounds, all clips are scored.

    \b
    Examples:
      python -m idecode_core paper score-sets cifar10-rotations --data-root data
      python -m idecode_core paper score-sets checkpoints/esc50-animals
      python -m idecode_core paper score-sets rivals
      python -m idecode_core paper score-sets attacks --attacked-points 500
    """
    from idecode_core.folder.settings import checkpoint_root, find_detector, read_settings
    from idecode_core.folder.stored import RIVALS as PLACE
    from idecode_core.folder.stored import open_all
    from idecode_core.quality.score_sets import score_test_sets
    from idecode_core.report.card import write_card
    from paper.audio import NCM_NAMES
    from paper.score_attacks import score_attacks
    from paper.score_rivals import RIVALS, score_costs, score_rivals

    root = checkpoint_root()
    rivals = [name for name in names if name in RIVALS]
    folders = [find_detector(name) for name in names if name not in (*RIVALS, "rivals", "attacks")]
    with progress_bars() as report:
        for folder in folders:
            settings = read_settings(folder)
            done = score_test_sets(
                folder,
                sets_of(settings, data_root, id_points, ood_points),
                draws=draws,
                ablations=list(NCM_NAMES) if settings.takes_sounds else (),
                without_familiarity=without_familiarity,
                members=sorted(path.parent for path in folder.resolve().parent.glob("*/config.json")),
                report=report,
            )
            write_card(folder)
            typer.echo(f"{folder}: scores of {', '.join(done)} are stored.")
        if "attacks" in names:
            victims = score_attacks(root, attacked, data_root, points=attacked_points, report=report)
            typer.echo(f"{root / 'adversarial'}: scores of attacks on {', '.join(victims)} are stored.")
    if rivals or "rivals" in names:
        made = score_rivals(root, [] if "rivals" in names else rivals, data_root=data_root, say=typer.echo)
        score_costs(root, [stored.name for stored in open_all(root)], data_root=data_root, say=typer.echo)
        typer.echo(f"{root / PLACE}: {', '.join(made) or 'nothing new'}.")


def sets_of(
    settings: "FolderSettings", data_root: Path | None, id_points: int, ood_points: int
) -> "Iterator[SetToScore]":
    """The sets that belong to the dataset a detector names as its own; for sounds, to the recipe that it was trained by."""
    from idecode_core.folder.record import read_training
    from idecode_core.quality.score_sets import image_sets, sound_sets
    from idecode_core.training.parts import load_parts
    from idecode_core.training.recipes import get_recipe

    if settings.dataset and not settings.takes_sounds:
        return image_sets(settings.dataset, data_root, id_points, ood_points)
    members = (str(name).partition("@")[0] for name in settings.scorer.get("names", ()))  # they lie beside it
    folders = [settings.folder, *(settings.folder.parent / name for name in members)]
    record = next(filter(None, map(read_training, folders)), None)
    if not settings.dataset or record is None:
        raise CheckpointError(
            f"{settings.name} has no test sets of its own: expected a detector of a public dataset, as `train` and `merge` "
            f"write them. For your own data use `python -m idecode_core evaluate --detector {settings.folder} --id FOLDER "
            "--ood FOLDER`."
        )
    recipe = get_recipe(record.recipe)
    parts = load_parts(recipe, data_root)
    assert parts.test is not None  # sounds always have a test part
    return sound_sets(
        f"{recipe.dataset}-{recipe.shows.part or 'test'}", parts.test, parts.outside, parts.calibration
    )


def reproduce(
    names: Annotated[
        list[str], typer.Argument(help="Experiments, or all; a wrong name lists them.", show_default=False)
    ],
    checkpoints: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the detectors and their stored scores; else the variable IDECODE_CHECKPOINTS, else the "
            "project's own."
        ),
    ] = None,
    results: Annotated[Path, typer.Option(help="The file whose sections are written.")] = Path("RESULTS.md"),
) -> None:
    """Recompute tables and figures from stored scores, and write their sections of RESULTS.md, and the page docs/results.md.

    \b
    Examples:
      python -m idecode_core reproduce table1
      python -m idecode_core reproduce all
    """
    from idecode_core.files import write_text
    from idecode_core.folder.settings import CHECKPOINTS, checkpoint_root
    from idecode_core.folder.stored import has_scores
    from paper.experiments import possible, summary, write_results

    places = (checkpoint_root(), CHECKPOINTS)  # where `detect` finds a detector by its name
    root = checkpoints or next((p for p in places if any(map(has_scores, p.glob("*")))), places[0])
    for section in write_results(names, root, results):
        typer.echo(section.markdown())
    typer.echo(f"Written to {results}.")
    page = results.parent / "docs" / "results.md"
    if page.exists() and all(possible(name, root) for name in ("table1", "one-class", "audio")):
        write_text(page, summary(root))


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help=__doc__,
)
for command in (reproduce, score_sets, rival, attack_sets, one_class):
    app.command()(command)
