"""`idecode data`: what is there, what is missing, what can be fetched."""

# ruff: noqa: F811  `run` and `tiny_recipe` are fixtures of another file

from test_commands import run, tiny_recipe  # noqa: F401  fixtures


def test_data_check_lists_what_is_there_and_what_is_missing(run, tiny_recipe, tmp_path):
    (tmp_path / "data" / "svhn-test.npz").write_bytes(b"cut off")
    status, out, _ = run("data", "check")
    lines = {line.split()[0]: line for line in out.splitlines() if line.strip()}
    assert status == 0
    assert "80" in lines["tiny-train"]
    assert "damaged" in lines["svhn-test"]
    assert "bundled" in lines["fashion-sample"]
    assert "1,000" in lines["fashion-sample"]
    assert [name for name, line in lines.items() if "damaged" in line] == ["svhn-test"]
    assert "missing" in lines["cifar100-test"]
    assert "data fetch cifar100" in lines["cifar100-test"]


def test_data_fetch_refuses_unknown_names_before_anything_is_downloaded(run, tmp_path):
    status, _, err = run("data", "fetch", "cifar10", "imagenet", "--data-root", "d")
    assert status == 2
    assert "'imagenet' can be fetched" in err
    assert not (tmp_path / "d").exists()
