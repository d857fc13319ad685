"""`idecode mcp`: the tools as an assistant calls them, with the SDK's own client; nothing outside of the folder is read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import Client
from PIL import Image
from small import in_a_loop_of_its_own

from idecode_core import certify, load_detector
from idecode_core.cli.app import main
from idecode_core.image.sets import load_images
from idecode_core.serve.tools import server


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "photos").mkdir()
    for i, name in enumerate(("fashion-sample", "photos-sample")):
        Image.fromarray(load_images(name).x[0]).save(folder / "photos" / f"{i}.png")
    np.savetxt(folder / "normal.csv", np.arange(100.0))
    np.savetxt(folder / "new.csv", [50.0, 1000.0])
    secret = folder.parent / "secret.png"
    Image.new("RGB", (8, 8)).save(secret)
    (folder / "link.png").symlink_to(secret)
    return folder


def asked(folder: Path, tool: str, **arguments: Any) -> Any:
    async def call() -> Any:
        async with Client(server(folder)) as client:
            return await client.call_tool(tool, arguments)

    return in_a_loop_of_its_own(call())


def answer(folder: Path, tool: str, **arguments: Any) -> dict[str, Any]:
    result = asked(folder, tool, **arguments)
    assert not result.is_error, result.content[0].text
    return json.loads(result.content[0].text)


def test_four_tools_say_that_they_only_read(shared: Path) -> None:
    async def listed() -> Any:
        async with Client(server(shared)) as client:
            return (await client.list_tools()).tools

    tools = in_a_loop_of_its_own(listed())
    assert {tool.name for tool in tools} == {"detect", "explain", "certify", "evaluate"}
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_detect_gives_the_verdicts_of_the_library(shared: Path) -> None:
    told = answer(shared, "detect", files=["photos"])
    files = [shared / "photos" / f"{i}.png" for i in (0, 1)]
    ours = load_detector("fashion-rotations").detect([str(path) for path in files], n=5, epsilon=0.05)
    assert [one["p_value"] for one in told["verdicts"]] == ours.p_values.tolist()
    assert [one["file"] for one in told["verdicts"]] == ["photos/0.png", "photos/1.png"]
    assert told["flagged"] == 1


def test_explain_says_what_a_verdict_means_and_what_not(shared: Path) -> None:
    told = answer(shared, "explain", file="photos/1.png", n=3)
    assert told["verdict"].startswith("Flagged")
    assert told["does_not_mean"]
    assert len(told["draws"]) >= 3


def test_certify_gives_the_threshold_of_the_library(shared: Path) -> None:
    told = answer(shared, "certify", calibration="normal.csv", test="new.csv", epsilon=0.1)
    assert told["threshold"] == certify(np.arange(100.0), epsilon=0.1).threshold(0.1)
    assert told["flagged_rows"] == [1]


def test_evaluate_reads_stored_scores(shared: Path) -> None:
    rows = answer(shared, "evaluate", detector="fashion-rotations")["rows"]
    assert all(row["auroc"] > 0.98 for row in rows)


@pytest.mark.parametrize("path", ["../secret.png", "link.png", "/etc/hostname", "photos/../../secret.png"])
def test_nothing_outside_of_the_folder_is_read(shared: Path, path: str) -> None:
    for tool, arguments in (
        ("detect", {"files": [path]}),
        ("explain", {"file": path}),
        ("certify", {"calibration": path}),
    ):
        result = asked(shared, tool, **arguments)
        assert result.is_error
        assert "outside of the folder" in result.content[0].text


def test_a_link_below_a_folder_is_not_followed_out_of_it(shared: Path) -> None:
    result = asked(shared, "detect", files=["."])
    assert result.is_error
    assert "outside of the folder" in result.content[0].text


def test_a_detector_outside_of_the_folder_is_not_opened(shared: Path) -> None:
    result = asked(shared, "detect", files=["photos"], detector="../elsewhere")
    assert result.is_error
    assert "outside of the folder" in result.content[0].text


def test_a_folder_that_is_not_there_ends_the_command_with_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mcp", str(tmp_path / "none")])
    assert ended.value.code == 2
    assert "is no folder" in capsys.readouterr().err
