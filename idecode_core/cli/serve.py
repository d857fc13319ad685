"""`serve`: a detector as a web service."""

import socket
from typing import Annotated

import typer

from idecode_core.cli import inputs
from idecode_core.errors import SettingError
from idecode_core.files.read import reason


def serve(
    detector: inputs.DetectorName = inputs.DEFAULT_DETECTOR,
    n: inputs.Draws = None,
    epsilon: inputs.Epsilon = 0.05,
    delta: inputs.Delta = None,
    seed: inputs.Seed = 0,
    aggregate: inputs.Aggregate = "sum",
    device: inputs.Device = None,
    host: Annotated[
        str, typer.Option(help="127.0.0.1 for this machine only, 0.0.0.0 for everyone who can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of the service.")] = 8000,
) -> None:
    """Answer files over HTTP: POST /detect, GET /health, GET /metrics for Prometheus. Needs the extra [serve].

    \b
    Examples:
      python -m idecode_core serve --detector fashion-rotations
      curl --data-binary @photo.jpg http://127.0.0.1:8000/detect
      curl --form file=@photo.jpg http://127.0.0.1:8000/detect
    """
    import uvicorn

    from idecode_core.conformal import check_epsilon
    from idecode_core.conformal.calibration import chosen_n
    from idecode_core.serve.service import Settings, make_service

    check_free(host, port)
    loaded = inputs.open_detector(detector, device)
    check_epsilon(epsilon, loaded.calibration.k)
    draws = chosen_n(n, loaded.calibration.n_max, loaded.name)
    service = make_service(loaded, Settings(draws, epsilon, delta, seed, aggregate))
    inputs.complain(f"{loaded.name} answers at http://{host}:{port}/detect")
    uvicorn.run(service, host=host, port=port, log_level="warning", access_log=False)


def check_free(host: str, port: int) -> None:
    """Said before the detector is loaded, and before the service says that it answers."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will
            one.bind((host, port))
    except OSError as error:
        raise SettingError(
            f"Nothing can answer at {host}, port {port} ({reason(error)}). Choose another --port or --host, or end what runs "
            "there."
        ) from None
