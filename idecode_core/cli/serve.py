"""`serve`: a detector as a web service."""

from typing import Annotated

import typer

from idecode_core.cli.inputs import (
    DEFAULT_DETECTOR,
    Aggregate,
    Delta,
    DetectorName,
    Device,
    Draws,
    Epsilon,
    Seed,
    complain,
    open_detector,
)


def serve(
    detector: DetectorName = DEFAULT_DETECTOR,
    n: Draws = None,
    epsilon: Epsilon = 0.05,
    delta: Delta = None,
    seed: Seed = 0,
    aggregate: Aggregate = "sum",
    device: Device = None,
    host: Annotated[
        str, typer.Option(help="127.0.0.1 for this machine only, 0.0.0.0 for everyone who can reach it.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port of the service.")] = 8000,
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

    loaded = open_detector(detector, device)
    check_epsilon(epsilon, loaded.calibration.k)
    draws = chosen_n(n, loaded.calibration.n_max, loaded.name)
    service = make_service(loaded, Settings(draws, epsilon, delta, seed, aggregate))
    complain(f"{loaded.name} answers at http://{host}:{port}/detect")
    uvicorn.run(service, host=host, port=port, log_level="warning", access_log=False)
