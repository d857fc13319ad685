"""`serve`: a detector as a web service.

`mcp`: detectors as tools of a language model. `export`: a detector for another runtime.
"""

import socket
from pathlib import Path
from typing import Annotated

import typer

from idecode_core.cli import inputs
from idecode_core.cli.inputs import DEFAULT_DETECTOR, DetectorName, open_detector
from idecode_core.errors import CheckpointError, SettingError
from idecode_core.files.read import reason


def serve(
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    n: inputs.Draws = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="A public seed: answers as those of `detect` with it.", show_default="a secret one"
        ),
    ] = None,
    secret_seed: Annotated[
        bool,
        typer.Option(
            "--secret-seed/--no-secret-seed",
            help="Draw with a random seed that only you can read, kept in --state; without, seed 0 as `detect`.",
        ),
    ] = True,
    aggregate: inputs.Aggregate = "sum",
    device: inputs.Device = None,
    model: inputs.Model = None,
    trust_program: inputs.TrustProgram = False,
    host: Annotated[
        str, typer.Option(help="127.0.0.1 for this machine only, 0.0.0.0 for everyone who can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the service.")] = 8000,
    token: Annotated[
        str,
        typer.Option(
            envvar="IDECODE_TOKEN",
            help="Ask for it: Authorization: Bearer TOKEN. Others on this machine see options, so the variable is safer.",
            show_default=False,
        ),
    ] = "",
    per_minute: Annotated[
        int | None,
        typer.Option(min=1, help="Requests that one client may send in a minute; any if left out."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the secret seed and the watched stream; among your own data if left out.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Answer files over HTTP: POST /detect, /detect/many, GET /docs, /health, /metrics. Needs the extra [serve].

    \b
    Examples:
      python -m idecode_core serve --detector fashion-rotations
      curl --data-binary @photo.jpg http://127.0.0.1:8000/detect
      curl --form file=@photo.jpg 'http://127.0.0.1:8000/detect?n=10&epsilon=0.01'
    """
    import uvicorn

    from idecode_core.conformal.settings import Settings
    from idecode_core.folder.settings import user_detectors
    from idecode_core.serve import access
    from idecode_core.serve.service import make_service

    check_free(host, port)
    loaded = inputs.open_detector(detector, device, model, trust_program)
    state = state or user_detectors().parent / "serve"
    if seed is None:
        seed = access.secret_seed(state / "seed") if secret_seed else 0
    service = make_service(
        loaded,
        Settings(n, epsilon, delta, aggregate, seed),
        token=token,
        per_minute=per_minute,
        stream_file=state / "stream.npz",
    )
    inputs.complain(f"{loaded.name} answers at http://{host}:{port}/detect")
    if sentence := access.opened(host, port, token):
        inputs.complain(sentence)
    uvicorn.run(service, host=host, port=port, **access.server_options())


def check_free(host: str, port: int) -> None:
    """Said before the detector is loaded, and before the service says that it answers."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will
            probe.bind((host, port))
    except OSError as error:
        raise SettingError(
            f"Nothing can answer at {host}, port {port} ({reason(error)}). Choose another --port or --host, or end what runs "
            "there."
        ) from None


def mcp(
    folder: Annotated[
        Path, typer.Argument(help="Files below it may be read, and no others.", show_default=False)
    ],
) -> None:
    """Offer detect, explain, certify and evaluate to a language model, over stdin and stdout. Needs the extra [mcp].

    Read-only. An assistant that speaks the Model Context Protocol starts this command by itself.

    \b
    Example:
      idecode mcp photos/
    """
    from idecode_core.serve.tools import server

    server(folder).run()


def export(
    out: Annotated[Path, typer.Option(help="The new folder.", show_default=False)],
    detector: DetectorName = DEFAULT_DETECTOR,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="As an ONNX network, with the calibration beside it.")
    ] = False,
    as_json: inputs.Json = False,
    as_csv: inputs.Csv = False,
) -> None:
    """Write a detector's network for ONNX Runtime: pixels and drawn transforms in, base scores out. Needs the extra [onnx].

    \b
    Example:
      python -m idecode_core export --onnx --detector fashion-rotations --out fashion-onnx
    """
    if not onnx:
        raise SettingError("Which format? Expected --onnx, the only one that there is.")
    if out.exists():
        raise CheckpointError(f"{out} is there already: expected a new folder; choose another for --out.")
    loaded = open_detector(detector, "cpu")
    from idecode_core.export.onnx import export_onnx

    export_onnx(loaded, out)
    k = loaded.calibration.k
    inputs.told(
        f"{out}: model.onnx, calibration.npz with k = {k:,}, and onnx.json, which explains both.",
        {"folder": str(out), "detector": loaded.name, "k": k, "n_max": loaded.calibration.n_max},
        as_json,
        as_csv,
    )
