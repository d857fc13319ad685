"""A short version of each part of `make trial`, and its table."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest
from misbehaving import accept, misbehave

import trial.__main__
from idecode_core.errors import IdecodeError
from trial import dependencies, table, visitors
from trial.audit import audited
from trial.bad_files import BadFile, bad_files
from trial.files import judge, try_files
from trial.folders import try_folders
from trial.fuzz import READERS, good_of, reader
from trial.table import Outcome
from trial.visitors import Visitor
from trial.watch import DIED, HANG, READ, REFUSED, TRACEBACK, Watched

ROOT = Path(__file__).parent.parent


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
        "calibrating": 1,
        "scoring a folder of files": 1,
        "writing score files": 1,
        "full after a few bytes": 5,
        "read-only folder": 5,
    }


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


def test_the_table_goes_into_its_place_and_leaves_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "reliability.md"
    path.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    table.write(path, table.markdown([Outcome("part", "what", cases=1234)], "python -m trial", "Linux"))
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| part | what | 1,234 | 0 | 0 | 0 |  | 0 |" in text
    assert "old" not in text
    assert table.BEGIN in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_every_direct_dependency_has_a_reason_and_a_row() -> None:
    listed = list(dependencies.direct())
    assert dependencies.named_in_pyproject() <= {one.name for one in listed}
    assert all(one.reason for one in listed)
    rows = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [one.name for one in listed if f"| {one.name} |" not in rows] == []
