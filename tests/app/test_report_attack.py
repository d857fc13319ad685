"""The Attack lab's report and notebook hold the numbers of the page, and each outcome has its sentence."""

# ruff: noqa: F811  `kept` is a fixture of another file

import json
from dataclasses import replace

import numpy as np
import pytest
from test_attack_lab import CLASSES, checkpoints, expected, kept  # noqa: F401  fixtures

from idecode_core.conformal.judge import Verdict
from idecode_core.report import Notebook, to_csv, to_html, to_json
from idecode_core.report.attack import CHOSEN, FirstChoice, Outcome, explanation, headline


def test_the_report_holds_one_row_per_attack_and_the_sentence_of_the_page(kept) -> None:
    report = kept[0]
    attacks = [row["attack"] for row in report.rows]
    assert attacks == ["none", *["fgsm"] * 7, "pgd-detector"]
    attacked = expected(0.4)
    assert report.rows[1]["l2"] == pytest.approx(attacked.l2[0])
    assert report.rows[1]["victim_says"] == CLASSES[int(attacked.after.argmax())]
    assert report.sentences[0].startswith("Fooled and")
    assert any(CHOSEN[1:] in sentence for sentence in report.sentences)
    assert "score_vector_4" in to_csv(report).splitlines()[0]
    assert json.loads(to_json(report))["settings"]["strength"] == 0.4
    assert to_html(report).count("<img") >= 9


@pytest.fixture
def run_notebook(tmp_path, monkeypatch):
    """In a folder with nothing but the notebook and its pictures."""

    def run(notebook: Notebook) -> dict:
        notebook.write_into(tmp_path)
        monkeypatch.chdir(tmp_path)
        space: dict = {}
        for cell in json.loads(notebook.text)["cells"]:
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), space)
        return space

    return run


def test_the_notebook_attacks_again_and_finds_the_numbers_of_the_page(kept, run_notebook, capsys) -> None:
    space = run_notebook(kept[1])
    assert "As on the page" in capsys.readouterr().out
    assert len(space["again"]) == 8
    along = sorted(
        (row["strength"], row["p_value"]) for row in kept[0].rows if row["attack"] != "pgd-detector"
    )
    assert space["strengths"] == [strength for strength, _ in along]
    drawn = space["judgement"].p_values[space["places"]]
    np.testing.assert_allclose(drawn, [p for _, p in along], atol=1.001 / (space["judgement"].k + 1))


def test_the_notebook_stops_when_a_number_differs(kept, run_notebook) -> None:
    shown = repr(float(expected(0.4).l2[0]))
    assert shown in kept[1].text
    changed = replace(kept[1], text=kept[1].text.replace(shown, "99.9"))
    with pytest.raises(AssertionError):
        run_notebook(changed)


def a_verdict(is_ood: bool) -> Verdict:
    return Verdict(1.0, 2 if is_ood else 60, 99, 0.03 if is_ood else 0.61, 0.05, is_ood, 0.9)


def an_outcome(after: str, *, clean: bool = False, flagged: bool = False, **changes: object) -> Outcome:
    whole = {
        "truth": "cat",
        "before": FirstChoice("cat", 0.9),
        "strength": 0.1,
        "is_changed": True,
        **changes,
    }
    return Outcome(
        after=FirstChoice(after, 0.7), clean=a_verdict(clean), attacked=a_verdict(flagged), **whole
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (an_outcome("dog", flagged=True), "Fooled and flagged"),
        (an_outcome("dog", flagged=True, clean=True), "Fooled and flagged, but so was the clean picture"),
        (an_outcome("dog"), "Fooled and not noticed"),
        (an_outcome("cat", flagged=True), "The attack failed"),
        (an_outcome("cat", is_changed=False), "The attack failed"),
        (an_outcome("cat", strength=0.0, is_changed=False), "Nothing was changed"),
        (an_outcome("dog", before=FirstChoice("dog", 0.9)), "Nothing to attack"),
    ],
)
def test_every_outcome_has_its_sentence_and_only_a_success_speaks_of_the_promise(
    outcome: Outcome, said: str
) -> None:
    assert headline(outcome)[0] == said
    assert outcome.is_fooled == said.startswith("Fooled")
    assert (CHOSEN in explanation(outcome)[1]) == outcome.is_fooled
