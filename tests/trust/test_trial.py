"""A short version of each part of `make trial`, and its table."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from misbehaving import accept, misbehave

import trial.__main__
from idecode_core.detector import Detector
from idecode_core.draws import content_hash
from idecode_core.errors import IdecodeError
from idecode_core.folder.detector import save_detector
from idecode_core.image.read import read_image
from trial import dependencies, exports, pull, service, sessions, small, table, training, visitors
from trial.audit import audited
from trial.bad_files import BadFile, bad_files
from trial.files import judge, try_files
from trial.folders import try_folders
from trial.fuzz import READERS, good_of, reader
from trial.table import Outcome
from trial.visitors import Visitor
from trial.watch import DIED, HANG, READ, REFUSED, TRACEBACK, Watched

ROOT = Path(__file__).parents[2]


def problems(outcomes: list[Outcome]) -> list[str]:
    return [words for outcome in outcomes for words in outcome.problems]


def test_the_same_seed_makes_the_same_bad_files() -> None:
    one, two, other = (list(islice(bad_files(seed, changes=4), 400)) for seed in (3, 3, 4))
    assert one == two
    assert one != other
    assert len({file.data for file in one}) > 250


def test_bad_files_are_read_or_refused_with_one_line() -> None:
    outcomes = list(try_files(1, short=True))
    assert problems(outcomes) == []
    assert sum(outcome.cases for outcome in outcomes) > 500
    assert all(outcome.most_megabytes is not None and outcome.most_megabytes < 1024 for outcome in outcomes)


def test_bad_folders_are_refused_with_one_line_or_the_same_detector(tmp_path: Path) -> None:
    (outcome,) = try_folders(1, True, tmp_path)
    assert outcome.problems == []
    assert outcome.cases == 60


def test_kills_a_full_disk_and_read_only_folders_lose_nothing(tmp_path: Path) -> None:
    """Each job of the trial once. In a process of its own: it forks, which a process with many threads must not do."""
    program = """
import json, sys
from pathlib import Path
from trial.disk import try_disk
from trial.kills import try_kills
for outcome in (*try_kills(1, 1, Path(sys.argv[1]) / "kills"), *try_disk(True, Path(sys.argv[1]) / "disk")):
    print(json.dumps([outcome.what, outcome.cases, outcome.problems]))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [problem for *_, problem in found if problem] == []
    assert {what: cases for what, cases, _ in found} == {
        "saving over a detector": 1,
        "training and replacing a detector": 1,
        "folder of files, trained on": 1,
        "calibrating": 1,
        "scoring a folder of files": 1,
        "writing score files": 1,
        "full after a few bytes": 6,
        "read-only folder": 6,
    }


def test_every_door_is_a_part_of_the_trial() -> None:
    assert {"training", "service", "pull", "sessions", "exports", "ray"} <= set(trial.__main__.PARTS)


@pytest.mark.parametrize("part", ["service", "pull", "sessions", "exports"])
def test_the_doors_that_strangers_use_hold(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("IDECODE_SESSIONS", "IDECODE_CHECKPOINTS"):
        monkeypatch.setenv(variable, str(tmp_path))  # put back afterwards
    outcomes = list(trial.__main__.outcomes(part, True, 1, tmp_path))
    assert problems(outcomes) == []
    assert {outcome.part for outcome in outcomes} == {part}
    assert all(outcome.cases for outcome in outcomes)


def test_training_takes_nothing_away_wherever_it_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path / "detectors"))
    outcome = training.try_places(tmp_path)
    assert (outcome.problems, outcome.cases) == ([], 28)


def test_a_training_that_takes_its_input_away_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def takes(source: Path, out: Path, **_: object) -> None:
        (source / "000.png").unlink(missing_ok=True)

    monkeypatch.setattr(training, "train_folder", takes)
    assert training.try_places(tmp_path).wrong == 29  # all were accepted, and a picture is gone


def test_a_calibration_of_other_files_than_the_listed_ones_is_noticed(tmp_path: Path) -> None:
    made, pool = tmp_path / "made", training.write_pictures(tmp_path / "pool", 3)
    samples = [read_image(path) for path in sorted(pool.iterdir())]
    detector = Detector.calibrate("made", small.scorer(), samples[:20], n_max=2)
    for listed, wrong in ((samples[:20], 0), (samples[20:], 1)):
        text = "\n".join(["part,content", *(f"calibration,{content_hash(one)}" for one in listed)])
        save_detector(detector, made, beside={"files.csv": lambda path, text=text: path.write_text(text)})
        outcome = Outcome("training", "noticed")
        training.check_calibration(outcome, made, pool, "a case")
        assert outcome.wrong == wrong, outcome.problems


def test_a_pull_that_accepts_anything_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDECODE_CHECKPOINTS", str(tmp_path))
    real = pull.pull

    def accept_zips(url: str, source: str = "", **options: object) -> object:
        return real(url, source, **options) if source else (tmp_path / "home" / "new").write_text(url)

    monkeypatch.setattr(pull, "pull", accept_zips)
    monkeypatch.setattr(pull, "contents", lambda folder: {path.name: b"" for path in folder.rglob("new")})
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "good.zip").write_bytes(b"")
    save_detector(small.detector("kept"), tmp_path / "home" / "kept")
    outcome = pull.try_hostile(tmp_path / "site", tmp_path / "home", "http://127.0.0.1:9")
    zips, names = 2 * (3 + len(pull.LIES)), 8 + 6
    assert outcome.wrong == zips + names + 1  # and the file that was written


def test_a_service_that_falls_over_is_noticed(tmp_path: Path) -> None:
    answers = {
        b"a": (200, {}),
        b"b": (500, {}),
        b"c": (422, {}),
        b"d": TimeoutError("late"),
        b"e": OSError("reset"),
    }
    answers |= {b"f": (503, {"error": "Too much."}), b"g": (422, {"error": "No picture."})}
    running = SimpleNamespace(post=answers.__getitem__, megabytes=iter([100.0] + [3000.0] * 10_000).__next__)
    outcome = service.posted(running, "noticed", list(answers))  # type: ignore[arg-type]
    assert (outcome.cases, outcome.tracebacks, outcome.hangs) == (7, 2, 1)
    assert outcome.wrong in (1, 2)  # no sentence; and the memory, if it was looked at in time


def test_names_that_become_code_markup_or_formulas_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = exports.try_exports(0, 8)
    assert (plain.cases, plain.problems) == (8, [])
    monkeypatch.setattr(exports, "PIECES", ("=1", "<img src=x>", "\nimport os"))
    monkeypatch.setattr(
        exports,
        "to_html",
        lambda made: f"<p>{made.title}</p>",
    )
    monkeypatch.setattr(
        exports, "to_csv", lambda made: "name\n" + "\n".join(str(row["name"]) for row in made.rows)
    )
    monkeypatch.setattr(
        exports,
        "inspection_notebook",
        lambda case, files: SimpleNamespace(
            text=json.dumps({"cells": [{"cell_type": "code", "source": f"x = 1  # {case.detector}"}]})
        ),
    )
    found = "\n".join(exports.try_exports(0, 3).problems)
    assert "a formula: =1" in found
    assert "'<img src=x>': other tags" in found
    assert "another program than for a harmless name" in found


def test_a_session_that_opens_with_other_numbers_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDECODE_SESSIONS", str(tmp_path))
    monkeypatch.setattr(
        sessions.Session, "open", lambda folder: SimpleNamespace(p_values=[0.5], samples=lambda: None)
    )
    outcome = sessions.try_sessions(1, 4, tmp_path)
    assert outcome.wrong == 4


def test_the_watch_sees_hangs_deaths_errors_and_memory_and_goes_on() -> None:
    with Watched(misbehave, patience=3) as read:
        assert read("nothing").how == READ
        assert read("raise").how == TRACEBACK
        assert read("print").how == TRACEBACK
        assert read("refuse").how == REFUSED
        assert read("die").how == DIED
        assert read("grow").megabytes == pytest.approx(400, abs=60)
        assert read("hang").how == HANG
        assert read("nothing").how == READ


def test_the_trial_notices_what_it_is_for() -> None:
    """A reader that accepts what must be refused, and one that takes too much memory."""
    outcome = Outcome("files", "image")
    with Watched(accept, patience=30) as read:
        judge(outcome, BadFile("image", "a.png", b"", "empty", must_be_refused=True), read)
    assert (outcome.cases, outcome.wrong, outcome.sound) == (1, 1, False)


def test_requests_to_other_hosts_are_noticed() -> None:
    remote: list[str] = []
    for url in (
        "http://localhost:8501/x",
        "data:image/png;base64,x",
        "https://fonts.example.com/a",
        "ws://localhost:99/s",
    ):
        Visitor.watch(url, "localhost:8501", remote)
    assert remote == ["https://fonts.example.com/a", "ws://localhost:99/s"]


@pytest.mark.parametrize(("growth", "problems"), [(0.0, 0), (300.0, 1)])
def test_a_soak_notices_a_server_that_grows_with_its_visitors(growth, problems, monkeypatch) -> None:
    """Without a browser: three visitors come and go six times, and the server takes so many MB for each."""
    visits: list[float] = []

    def visit(_sessions: object, outcome: Outcome, _patience: float) -> None:
        outcome.cases += 3
        visits.append(growth)

    monkeypatch.setattr(visitors, "visit", visit)
    monkeypatch.setattr(visitors, "visitors", lambda *_: nullcontext())
    monkeypatch.setattr(visitors, "expected", lambda *_: [])
    monkeypatch.setattr(visitors, "megabytes", lambda server: 500 + sum(visits))
    monkeypatch.setattr(visitors, "time", SimpleNamespace(monotonic=lambda: float(len(visits))))
    (outcome,) = visitors.try_soak(None, "http://localhost:1", 6, seed=0, server=1)
    assert (outcome.cases, outcome.wrong) == (18, problems)
    assert outcome.most_megabytes == 4 * growth  # the first two visits load what is kept


def test_a_part_that_falls_over_is_a_row_of_its_own_and_the_others_go_on(monkeypatch) -> None:
    def fall(*arguments: object) -> Iterator[Outcome]:
        yield Outcome("files", "before", cases=1)
        raise RuntimeError("no browser")

    monkeypatch.setattr(trial.__main__, "outcomes", fall)
    before, broken = trial.__main__.tried("browser", True, 0)
    assert before.sound
    assert (broken.part, broken.tracebacks, broken.sound) == ("browser", 1, False)
    assert "no browser" in broken.problems[0]


def test_only_what_the_database_knows_counts_as_checked() -> None:
    """Where it is out of reach, pip-audit ends well and has skipped every package."""
    skipped = {"name": "a", "skip_reason": "Dependency not found on PyPI and could not be audited: a (1.0)"}
    clean, holed = (
        {"name": "b", "version": "1.0", "vulns": []},
        {"name": "c", "version": "2.0", "vulns": [{"id": "CVE-1"}]},
    )

    def found(*packages: dict[str, object]) -> tuple[int, int, bool]:
        outcome = audited(json.dumps({"dependencies": packages}))
        return outcome.cases, outcome.wrong, "not checked" in outcome.what

    assert found(skipped, skipped) == (0, 0, True)
    assert found(skipped, clean) == (1, 0, False)
    assert found(skipped, clean, holed) == (2, 1, False)
    assert "not checked" in audited("").what


def test_the_fuzzed_readers_read_what_is_good_and_refuse_what_is_not() -> None:
    """A fuzzer whose reader refuses everything, or never refuses, finds nothing."""
    for kind in READERS:
        read = reader(kind)
        assert all(read(data) is not None for data in good_of(kind, 0))
        if kind != "zip":  # an archive that cannot be read is a sentence among its files
            with pytest.raises(IdecodeError):
                read(b"{")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """An empty one, where one is: call it with a file's name to commit a change of that file."""
    for variable, value in (("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b")):
        monkeypatch.setenv(variable, value)
        monkeypatch.setenv(variable.replace("AUTHOR", "COMMITTER"), value)
    monkeypatch.chdir(tmp_path)
    table.git("init", "-q")

    def commit(name: str) -> str:
        with (tmp_path / name).open("a") as file:
            file.write("changed\n")
        table.git("add", name)
        table.git("commit", "-qm", name)
        return table.head()

    return commit


def write(path: Path, *outcomes: Outcome) -> str:
    table.write(path, outcomes, ("files", "kills", "disk"), "python -m trial", "Linux", table.head())
    return path.read_text()


def test_the_table_goes_into_its_place_and_leaves_the_rest(repository, tmp_path: Path) -> None:
    commit, path = repository("app.py"), tmp_path / "reliability.md"
    path.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    text = write(path, Outcome("kills", "what", cases=1234, seconds=90))
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert f"| kills | what | 1,234 | 0 | 0 | 0 |  | 90 | {commit} |" in text
    assert "old" not in text.replace("oldest", "")


def test_parts_that_are_run_one_by_one_make_one_table_and_each_row_names_its_commit(
    repository, tmp_path: Path
) -> None:
    path = tmp_path / "reliability.md"
    path.write_text(f"{table.BEGIN}\n{table.END}\n")
    first = repository("app.py")
    write(path, Outcome("disk", "a", cases=1, seconds=60), Outcome("disk", "b", cases=2, seconds=60))
    second = repository("app.py")
    write(path, Outcome("files", "c", cases=3, seconds=60))
    text = write(path, Outcome("kills", "d", cases=4), Outcome("kills", "e", cases=5))
    rows = [(row[1], row[3]) for row in table.ROW.finditer(text)]
    assert rows == [("files", second), *[("kills", second)] * 2, *[("disk", first)] * 2]
    assert "3 minutes together" in text
    assert f"The oldest is of `{first}`; the program has moved by 1 commit since" in text
    text = write(path, Outcome("disk", "f", cases=6))  # again: its rows are replaced
    assert [row[3] for row in table.ROW.finditer(text)] == [second] * 4
    assert f"The oldest is of `{second}`; the program has moved by 0 commits since" in text


def test_only_commits_that_change_the_program_are_counted(repository, tmp_path: Path) -> None:
    path = tmp_path / "reliability.md"
    path.write_text(f"{table.BEGIN}\n{table.END}\n")
    repository("app.py")
    write(path, Outcome("disk", "a", cases=1))
    for name in ("app.py", "README.md", "app.py"):
        repository(name)
    table.count_commits(path)
    assert "the program has moved by 2 commits since" in path.read_text()


def test_the_page_holds_a_table_of_parts_that_there_are() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert table.MOVED.search(text)
    assert {row[1] for row in table.ROW.finditer(text)} <= set(trial.__main__.PARTS)
    assert all(f"\n| {part} | " in text.partition("## What the parts do")[2] for part in trial.__main__.PARTS)


def test_a_licence_that_the_metadata_leave_out_is_read_from_the_licence_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, files in {"silent_one": ("LICENSE", "AUTHORS"), "silent_two": ("AUTHORS",)}.items():
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        for file in files:
            (about / file).write_text("\nApache Software License 2.0\n\nCopyright of somebody\n")
        (about / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nLicense: UNKNOWN\n"
        )
        (about / "RECORD").write_text("".join(f"{about.name}/{file},,\n" for file in files))
    monkeypatch.syspath_prepend(tmp_path)
    assert dependencies.licence("silent_one") == "Apache Software License 2.0"
    assert dependencies.licence("silent_two") == dependencies.UNDECLARED


def test_every_direct_dependency_has_a_reason_and_a_row() -> None:
    listed = list(dependencies.direct())
    assert dependencies.named_in_pyproject() <= {one.name for one in listed}
    assert all(one.reason for one in listed)
    rows = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [one.name for one in listed if f"| {one.name} |" not in rows] == []
