"""Columns of `idecode certify`: a gap and a name are said, and a detector's score vectors are taken."""

# ruff: noqa: F811  `tables` is a fixture of another file

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from test_cli_certify import run
from test_ways import (
    rows_of,
    tables,  # noqa: F401  a fixture
)

from idecode_core.conformal import p_values
from idecode_core.conformal.evidence import derandomised_e_values, e_benjamini_hochberg
from idecode_core.conformal.integrative import integrative_p_values
from idecode_core.conformal.weighted import density_ratio, places, weighted_p_values


def test_a_column_with_a_gap_is_named_as_why_nothing_can_be_weighted(tables, capsys) -> None:
    folder, (scores, *_) = tables[0], tables[1]
    cells = ["nan", *map(str, scores[1:])]
    rows = "".join(f"{score},{cell}\n" for score, cell in zip(scores, cells, strict=True))
    (folder / "gap.csv").write_text(f"score,light\n{rows}")
    asked = ("--test", folder / "new.csv", "--column", "score", "--shifted-to", folder / "winter.csv")
    status, _, err = run(capsys, folder / "gap.csv", *asked)
    assert (status, err.count("\n")) == (2, 1)
    assert "a finite number in each row" in err


def test_seeds_side_by_side_are_judged_by_e_bh_from_columns_and_from_what_score_writes(
    tmp_path, capsys
) -> None:
    generator = np.random.default_rng(4)
    known, new = generator.normal(size=(300, 4)), generator.normal(size=(30, 4))
    new[:10] += 6
    np.savez(tmp_path / "calibration.npz", score_vectors=known)
    for name, side in (("known.csv", known), ("new.csv", new)):
        np.savetxt(tmp_path / name, side, delimiter=",", header="a,b,c,d", comments="", fmt="%.17g")
    folder = tmp_path / "scores"
    folder.mkdir()
    vectors = [*new[:, :3].tolist(), None]  # fewer draws than were calibrated, and a file without a score
    table = pa.table({"file": [f"f{i}" for i in range(31)], "score": [*new[:, :3].sum(axis=1).tolist(), None],
                      "score_vector": pa.array(vectors, pa.list_(pa.float64()))})  # fmt: skip
    pq.write_table(table.slice(0, 12), folder / "part-0000000000-a.parquet")
    pq.write_table(table.slice(12), folder / "part-0000000012-b.parquet")
    for calibration, test, seeds in (("known.csv", "new.csv", 4), ("calibration.npz", "scores", 3)):
        asked = (tmp_path / calibration, "--test", tmp_path / test, "--many", "e-bh", "--epsilon", 0.2)
        found = [json.loads(line)["is_ood"] for line in run(capsys, *asked, "--json")[1].splitlines()][:30]
        e = derandomised_e_values(known[:, :seeds].T, new[:, :seeds].T, 0.1)
        assert found == e_benjamini_hochberg(e, 0.2).tolist()
        assert any(found)
        assert f"e-BH over {seeds} seeds" in run(capsys, *asked)[1]
    status, _, err = run(
        capsys, tmp_path / "known.csv", "--test", tmp_path / "new.csv", "--many", "e-bh", "--delta", 0.1
    )
    assert (status, "--delta goes with" in err) == (2, True)


def test_score_vectors_of_a_detector_are_summed_learn_from_outliers_and_are_weighted(
    tmp_path, capsys
) -> None:
    generator = np.random.default_rng(7)
    known, new = generator.normal(size=(300, 4)), generator.normal(size=(50, 3))
    new[:10, 1] += 6
    strange = generator.normal((0, 6, 0, 0, 0), size=(8, 5))
    batch = generator.normal(-0.3, 1, size=(200, 4))
    np.savez(tmp_path / "calibration.npz", score_vectors=known)
    for name, vectors in (("new", new), ("known", strange), ("batch", batch)):
        (tmp_path / name).mkdir()
        table = pa.table({"score": vectors.sum(axis=1), "score_vector": vectors.tolist()})
        pq.write_table(table, tmp_path / name / "part-0000000000-a.parquet")
    asked = (tmp_path / "calibration.npz", "--test", tmp_path / "new", "--json")
    p, _ = rows_of(run(capsys, *asked)[1])
    np.testing.assert_array_equal(p, p_values(known[:, :3].sum(axis=1), new.sum(axis=1)))
    p, _ = rows_of(run(capsys, *asked, "--outliers", tmp_path / "known")[1])
    np.testing.assert_array_equal(p, integrative_p_values(known[:, :3], strange[:, :3], new))
    assert (p < 0.05)[:10].all()
    p, _ = rows_of(run(capsys, *asked, "--shifted-to", tmp_path / "batch")[1])
    old, here, shifted = (side[:, :3].sum(axis=1) for side in (known, new, batch))
    weights, own = density_ratio(places(old, old), places(old, shifted), places(old, here))
    np.testing.assert_allclose(p, weighted_p_values(old, weights, here, own), rtol=1e-9)
