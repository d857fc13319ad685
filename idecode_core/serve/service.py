"""The service: POST a file, get its p-value. FastAPI."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException

from idecode_core import __version__
from idecode_core.conformal.calibration import aggregate_scores, chosen_n
from idecode_core.conformal.judge import judge
from idecode_core.detector import Detector
from idecode_core.draws import Prepared
from idecode_core.errors import IdecodeError, InputError
from idecode_core.guarantees.conditional import corrected_epsilon
from idecode_core.modality import modality_named
from idecode_core.serve.batching import Batcher, Overloaded
from idecode_core.serve.metrics import Metrics
from idecode_core.serve.watch import WatchedStream

FORM_BYTES = 16 * 2**10
"""What a form adds to the file that it carries."""


@dataclass(frozen=True)
class Settings:
    """How files are judged; the same for all of them."""

    n: int = 5
    epsilon: float = 0.05
    delta: float | None = None
    """With one: the rate is at most epsilon for a share 1 - delta of all calibration sets, else on average."""
    seed: int = 0
    aggregate: str = "sum"


class Answer(BaseModel):
    """What the service says of one file."""

    p_value: float
    is_ood: bool
    score: float
    k: int
    n: int
    epsilon: float
    delta: float | None
    detector: str
    version: str


class Health(BaseModel):
    status: str
    detector: str
    k: int
    n_max: int
    version: str


class Service:
    """A detector with its batches, its metrics and the stream that it watches."""

    def __init__(self, detector: Detector, settings: Settings) -> None:
        chosen_n(settings.n, detector.calibration.n_max, detector.name)  # refuses what was not calibrated
        self.detector, self.settings = detector, settings
        k, epsilon, delta = detector.calibration.k, settings.epsilon, settings.delta
        self.cut = epsilon if delta is None else corrected_epsilon(k, epsilon, delta)
        calibration_scores = detector.calibration.scores(settings.n, settings.aggregate)
        self.stream = WatchedStream(calibration_scores, np.random.default_rng(settings.seed))
        self.batcher = Batcher(detector.scorer, n=settings.n, seed=settings.seed)
        self.metrics = Metrics()
        self.most_bytes = modality_named(detector.scorer.modality).most_bytes

    async def answer(self, data: bytes) -> Answer:
        vector = await self.batcher.score(await asyncio.to_thread(self._prepare, data))
        settings, calibration = self.settings, self.detector.calibration
        (verdict,) = judge(calibration, vector[None], epsilon=self.cut, aggregate=settings.aggregate)
        log_martingale = self.stream.add(float(aggregate_scores(vector[None], settings.aggregate)[0]))
        self.metrics.judged(verdict.p_value, verdict.is_ood, log_martingale, self.stream.points)
        return Answer(
            p_value=verdict.p_value,
            is_ood=verdict.is_ood,
            score=verdict.score,
            k=verdict.k,
            n=settings.n,
            epsilon=settings.epsilon,
            delta=settings.delta,
            detector=self.detector.name,
            version=__version__,
        )

    def _prepare(self, data: bytes) -> Prepared:
        (decoded,) = self.detector.scorer.decode([data])
        return self.detector.scorer.prepare(decoded, self.settings.seed)

    async def posted(self, request: Request) -> bytes:
        """The file of a request: its body, or the field `file` of a form; at most `most_bytes`."""
        most = self.most_bytes + FORM_BYTES
        too_large = HTTPException(
            413, f"The file is too large: expected at most {self.most_bytes // 2**20} MB."
        )
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > most:
            raise too_large
        data = bytearray()
        async for block in request.stream():  # the declared size may be a lie, or not there at all
            data += block
            if len(data) > most:
                raise too_large
        if not request.headers.get("content-type", "").startswith("multipart/form-data"):
            return bytes(data)
        return await self._from_form(request, bytes(data))

    async def _from_form(self, request: Request, body: bytes) -> bytes:
        async def replay() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            async with Request(request.scope, replay).form(max_files=1, max_fields=8) as form:
                field = form.get("file")
                if isinstance(field, UploadFile):
                    return await field.read()
        except (MultiPartException, HTTPException, ValueError) as error:
            raise HTTPException(
                400, f"The form cannot be read ({getattr(error, 'detail', error)})."
            ) from None
        raise HTTPException(
            400, "The form has no field called file: expected the file as the body, or in that field."
        )


def make_service(detector: Detector, settings: Settings | None = None) -> FastAPI:
    """The web application of one detector."""
    service = Service(detector, settings or Settings())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(service.batcher.run())
        yield
        running.cancel()

    app = FastAPI(title="iDECODe", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service

    @app.post("/detect", response_model=Answer)
    async def detect(request: Request) -> Response | Answer:
        start = time.perf_counter()
        answer: Response | Answer
        status = 200
        try:
            answer = await service.answer(await service.posted(request))
        except (IdecodeError, HTTPException, Overloaded) as error:
            status, sentence = explain(error)
            answer = JSONResponse({"error": sentence}, status)
        except Exception:
            service.metrics.requests.labels("500").inc()
            raise
        service.metrics.requests.labels(str(status)).inc()
        service.metrics.seconds.observe(time.perf_counter() - start)
        return answer

    @app.get("/health")
    async def health() -> Health:
        calibration = detector.calibration
        return Health(
            status="ok", detector=detector.name, k=calibration.k, n_max=calibration.n_max, version=__version__
        )

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    return app


def explain(error: IdecodeError | HTTPException | Overloaded) -> tuple[int, str]:
    """The status and the sentence for an error."""
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, Overloaded):
        return 503, "Too many requests wait already; try again in a moment."
    return (422 if isinstance(error, InputError) else 500), str(error)
