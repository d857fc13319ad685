"""The service: POST a file, get its p-value. FastAPI."""

import asyncio
import logging
import time
import warnings
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import numpy as np
from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.security import HTTPBearer
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from idecode_core import __version__
from idecode_core.conformal.judge import judge
from idecode_core.conformal.settings import Settings
from idecode_core.detector import Detector
from idecode_core.draws import Prepared
from idecode_core.errors import IdecodeError, InputError, NothingFlaggedWarning, SettingError
from idecode_core.files.names import printable
from idecode_core.modality import modality_named
from idecode_core.serve.access import IDLE_SECONDS, Access
from idecode_core.serve.batching import Batcher, Overloaded
from idecode_core.serve.described import (
    FAILURES,
    MANY_FILES,
    ONE_FILE,
    Answer,
    Asked,
    Failure,
    Health,
    Result,
    docs_page,
)
from idecode_core.serve.watch import Metrics, WatchedStream

FORM_BYTES = 16 * 2**10
"""What a form adds to each file that it carries."""
MOST_FILES = 64  # of one request
BYTES_IN_FLIGHT = 2**28
"""Of all bodies that are being received or wait to be decoded."""
DECODERS = 2
"""Files that are decoded at the same time: a small file can unpack to the better part of a gigabyte."""
BODY_SECONDS = 30.0
SAVE_SECONDS = 60.0
logging.getLogger("python_multipart").setLevel(logging.ERROR)  # forms are answered; a log could be flooded
LEFT = 499
"""For the metrics: the client went away. Nobody reads that status."""


class Service:
    """A detector with its batches, its metrics and the stream that it watches."""

    def __init__(self, detector: Detector, settings: Settings, stream_file: Path | None = None) -> None:
        self.detector, self.settings = detector, settings
        self.n = settings.draws(detector.calibration.n_max, detector.name)  # refuses what was not calibrated
        settings.cut(detector.calibration.k)
        calibration_scores = detector.calibration.scores(self.n, settings.aggregate)
        self.stream = WatchedStream(calibration_scores, np.random.default_rng())
        self.stream_file = stream_file
        if stream_file is not None:
            self.stream.resume(stream_file)
        self.batcher = Batcher(detector.scorer)
        self.decoders = ThreadPoolExecutor(DECODERS)
        self.metrics = Metrics(self.stream)
        self.most_bytes = modality_named(detector.scorer.modality).most_bytes
        self.in_flight = 0  # bytes

    async def answer(self, data: bytes, asked: Asked | None = None) -> Answer:
        settings, calibration = (asked or Asked()).over(self.settings), self.detector.calibration
        n = settings.draws(calibration.n_max, self.detector.name)
        with warnings.catch_warnings():  # every new epsilon would be another line of the log
            warnings.simplefilter("ignore", NothingFlaggedWarning)
            cut = settings.cut(calibration.k)
        loop = asyncio.get_running_loop()
        sample = await loop.run_in_executor(self.decoders, self._prepare, data, settings.seed)
        vector = await self.batcher.score(sample, n)
        (verdict,) = judge(calibration, vector[None], epsilon=cut, aggregate=settings.aggregate)
        if (n, settings.seed) == (self.n, self.settings.seed):  # others are not like the stream's
            self.stream.add(verdict.score)
        self.metrics.judged(verdict.p_value, verdict.is_ood)
        return Answer(
            p_value=verdict.p_value,
            is_ood=verdict.is_ood,
            score=verdict.score,
            k=verdict.k,
            n=n,
            epsilon=settings.epsilon,
            delta=settings.delta,
            detector=self.detector.name,
            version=__version__,
        )

    async def result(self, name: str, data: bytes, asked: Asked) -> Result:
        """The answer for one of many files: one that cannot be read does not stop the others."""
        try:
            return Result(file=name, answer=await self.answer(data, asked))
        except InputError as error:
            return Result(file=name, error=str(error))

    def _prepare(self, data: bytes, seed: int) -> Prepared:
        (decoded,) = self.detector.scorer.decode([data])
        return self.detector.scorer.prepare(decoded, seed)

    @asynccontextmanager
    async def body(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The body of a request, counted among those in flight as long as it is needed."""
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > most:
            raise await self.too_large(request)
        data = bytearray()
        try:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    async for block in request.stream():  # the declared size may be a lie, or not be there
                        if self.in_flight + len(block) > BYTES_IN_FLIGHT:
                            raise Overloaded
                        self.in_flight += len(block)
                        data += block
                        if len(data) > most:
                            raise await self.too_large(request)
            except TimeoutError:
                raise HTTPException(
                    408, f"The file did not arrive within {BODY_SECONDS:g} seconds. Send it again."
                ) from None
            yield bytes(data)
        finally:
            self.in_flight -= len(data)

    async def too_large(self, request: Request) -> HTTPException:
        """Once the client has sent all, or some seconds later: cut off while it sends, it would see a reset in place of a sentence."""
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_SECONDS):
                async for _ in request.stream():
                    pass
        return HTTPException(413, f"The file is too large: expected at most {self.most_bytes // 2**20} MB.")

    async def detect_one(self, request: Request, asked: Asked) -> Answer:
        """The file is the body, or the field `file` of a form."""
        async with self.body(request, self.most_bytes + FORM_BYTES) as body:
            if not is_form(request):
                return await self.answer(body, asked)
            async with read_form(request, body, most_files=1) as form:
                (file,) = files_of(form)
                return await self.answer(await file.read(), asked)

    async def detect_many(self, request: Request, asked: Asked) -> list[Result]:
        """The files are fields called `file` of a form."""
        async with self.body(request, 4 * self.most_bytes) as body:
            if not is_form(request):
                raise HTTPException(400, "Expected a form with fields called file, one for each file.")
            async with read_form(request, body, most_files=MOST_FILES) as form:
                files = [(printable(file.filename or ""), await file.read()) for file in files_of(form)]
            return list(await asyncio.gather(*(self.result(name, data, asked) for name, data in files)))

    async def keep_stream(self) -> None:
        """Write the stream's state down, now and then, until cancelled."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            self.save_stream()

    def save_stream(self) -> None:
        if self.stream_file is not None and self.stream.points:
            with suppress(IdecodeError):  # a full disk does not stop a service
                self.stream.save(self.stream_file)


def is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").lower().startswith("multipart/form-data")


@asynccontextmanager
async def read_form(request: Request, body: bytes, most_files: int) -> AsyncIterator[FormData]:
    async def replay() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        form = await Request(request.scope, replay).form(max_files=most_files, max_fields=8)
    except (MultiPartException, HTTPException, ValueError, KeyError) as error:
        raise HTTPException(400, f"The form cannot be read ({getattr(error, 'detail', error)}).") from None
    try:
        yield form
    finally:
        await form.close()


def files_of(form: FormData) -> list[UploadFile]:
    files = [field for field in form.getlist("file") if isinstance(field, UploadFile)]
    if not files:
        raise HTTPException(
            400, "The form has no field called file: expected the file as the body, or in that field."
        )
    return files


def make_service(
    detector: Detector,
    settings: Settings | None = None,
    *,
    token: str = "",
    per_minute: int | None = None,
    stream_file: Path | None = None,
) -> FastAPI:
    """The web application of one detector.

    With a `token`, requests need it; `per_minute` limits those of each client. The state of the watched stream is kept in
    `stream_file`, where one is named.
    """
    service = Service(detector, settings or Settings(), stream_file)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = [asyncio.create_task(service.batcher.run()), asyncio.create_task(service.keep_stream())]
        yield
        for task in running:
            task.cancel()
        service.save_stream()
        service.decoders.shutdown(wait=False, cancel_futures=True)

    app = FastAPI(
        title="iDECODe",
        version=__version__,
        summary=f"Out-of-distribution detection with a guarantee: {detector.name}.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.service = service
    asks = [Depends(HTTPBearer(auto_error=False))] if token else []  # said to clients; Access asks for it
    app.add_middleware(Access, token=token, per_minute=per_minute)
    app.add_middleware(Watched, metrics=service.metrics)
    explainable = IdecodeError, HTTPException, Overloaded, RequestValidationError, ClientDisconnect, Exception
    for kind in explainable:
        app.add_exception_handler(kind, explained)

    @app.post("/detect", dependencies=asks, response_model=Answer, responses=FAILURES, openapi_extra=ONE_FILE)
    async def detect(request: Request, asked: Annotated[Asked, Query()]) -> Answer:
        """One file."""
        return await service.detect_one(request, asked)

    @app.post(
        "/detect/many",
        dependencies=asks,
        response_model=list[Result],
        responses=FAILURES,
        openapi_extra=MANY_FILES,
    )
    async def detect_many(request: Request, asked: Annotated[Asked, Query()]) -> list[Result]:
        """Several files at once, in their order; one that cannot be read does not stop the others."""
        return await service.detect_many(request, asked)

    @app.get("/health")
    async def health() -> Health:
        """For load balancers and containers."""
        calibration = detector.calibration
        return Health(
            status="ok", detector=detector.name, k=calibration.k, n_max=calibration.n_max, version=__version__
        )

    @app.get("/metrics", dependencies=asks, response_class=Response)
    async def metrics() -> Response:
        """For Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi()))

    return app


def explain(error: Exception) -> tuple[int, str]:
    """The status and the sentence for an error."""
    if isinstance(error, ClientDisconnect):
        return LEFT, "The client went away."
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, Overloaded):
        return 503, "Too many requests are under way already; try again in a moment."
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][1:])
        if first["type"] == "extra_forbidden":
            return 422, f"{name}: expected {', '.join(Asked.model_fields)}. Correct the name."
        return 422, f"{name}: {first['msg']}, got {first['input']!s:.50}. Correct it, or leave it out."
    if isinstance(error, InputError | SettingError):
        return 422, str(error)
    if isinstance(error, IdecodeError):
        return 500, str(error)
    return 500, "The service failed by an error of its own; its log has more."


async def explained(request: Request, error: Exception) -> Response:
    """One shape for all errors."""
    status, sentence = explain(error)
    headers = {"Retry-After": "1"} if status == 503 else getattr(error, "headers", None)
    failure = Failure(error=sentence, request_id=request.scope.get("request_id", ""))
    return JSONResponse(failure.model_dump(), status, headers)


class Watched:
    """Every request has an id, its client's or a new one, and the answer carries it. Prometheus is told of the posts: their status,
    and how long they took. A request that the server cancels at its end is answered, unless its answer has begun."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
        name = given if 0 < len(given) <= 64 and given.isascii() and given.isprintable() else uuid4().hex
        scope["request_id"] = name
        start = time.perf_counter()
        status: int | None = None

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except asyncio.CancelledError:
            if status is None:
                failure = Failure(error="The service is ending.", request_id=name)
                await JSONResponse(failure.model_dump(), 503)(scope, receive, watched)
        finally:
            if scope["path"].startswith("/detect"):
                self.metrics.requests.labels(str(status or 500)).inc()
                self.metrics.seconds.observe(time.perf_counter() - start)
