"""What the service takes and gives: for OpenAPI, from which clients are generated, and for people on /docs."""

import html
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, Field

from idecode_core.conformal.settings import Settings


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


class Failure(BaseModel):
    """What went wrong, in one sentence."""

    error: str
    request_id: str


class Result(BaseModel):
    """One file of many: its answer, or what is wrong with it."""

    file: str
    answer: Answer | None = None
    error: str | None = None


class Health(BaseModel):
    status: str
    detector: str
    k: int
    n_max: int
    version: str


class Asked(BaseModel, extra="forbid"):
    """Settings of one request; the service's own where they are left out. One that is not known is refused: it may be a slip."""

    n: int | None = Field(default=None, ge=1, description="Transforms drawn for each file.")
    epsilon: float | None = Field(default=None, gt=0, lt=1, description="Bound on the false detection rate.")
    delta: float | None = Field(
        default=None, gt=0, lt=1, description="Keep it for a share 1 - delta of all calibration sets."
    )
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="Seed of the draws.")

    def over(self, settings: Settings) -> Settings:
        return replace(settings, **self.model_dump(exclude_none=True))


BINARY = {"type": "string", "format": "binary"}


def form_schema(file: dict[str, Any]) -> dict[str, Any]:
    return {"schema": {"type": "object", "properties": {"file": file}, "required": ["file"]}}


ONE_FILE = {
    "requestBody": {
        "required": True,
        "description": "The file, or a form that carries it.",
        "content": {
            "application/octet-stream": {"schema": BINARY},
            "multipart/form-data": form_schema(BINARY),
        },
    }
}
MANY_FILES = {
    "requestBody": {
        "required": True,
        "description": "A form with one field called file for each file.",
        "content": {"multipart/form-data": form_schema({"type": "array", "items": BINARY})},
    }
}
FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": Failure, "description": "The form cannot be read."},
    401: {"model": Failure, "description": "A token is needed."},
    408: {"model": Failure, "description": "The body did not arrive in time."},
    413: {"model": Failure, "description": "Too large."},
    422: {"model": Failure, "description": "The file or a setting cannot be used."},
    429: {"model": Failure, "description": "Too many requests of this client."},
    503: {"model": Failure, "description": "Too much is under way; try again in a moment."},
}


def docs_page(openapi: dict[str, Any]) -> str:
    """What can be asked, as a page without scripts."""
    parts = [
        f"<h1>{html.escape(openapi['info']['title'])}</h1><p>{html.escape(openapi['info']['summary'])}</p>"
    ]
    for path, methods in openapi["paths"].items():
        for method, about in methods.items():
            parts.append(f"<h2><code>{method.upper()} {path}</code></h2>")
            parts.append(f"<p>{html.escape(about.get('description', ''))}</p>")
            if about.get("security"):
                parts.append("<p>Header: <code>Authorization: Bearer TOKEN</code></p>")
            if body := about.get("requestBody"):
                kinds = ", ".join(body["content"])
                parts.append(f"<p>Body: {html.escape(body['description'])} <code>{kinds}</code></p>")
            for given in about.get("parameters", ()):
                words = html.escape(given.get("description", ""))
                parts.append(f"<p><code>?{given['name']}=</code> {words}</p>")
    parts.append('<p>For programs: <a href="openapi.json">openapi.json</a></p>')
    return f"<!doctype html><meta charset='utf-8'><title>iDECODe</title>{''.join(parts)}"
