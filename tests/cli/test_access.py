"""Who may ask the service: tokens, limits per client."""

# ruff: noqa: F811  `detector` is a fixture of another file

import json

from test_serve import (
    IMAGES,
    Running,
    detector,  # noqa: F401  a fixture
    png,
)

from idecode_core.serve import access
from idecode_core.serve.access import opened
from idecode_core.serve.described import docs_page
from idecode_core.serve.service import make_service


def test_a_token_is_asked_for_where_one_is_set_and_health_stays_open(detector):
    running = Running(detector, token="open sesame")
    assert running.post(png(IMAGES[0]))[0] == 401
    assert running.post(png(IMAGES[0]), Authorization="Bearer wrong")[0] == 401
    assert running.post(png(IMAGES[0]), Authorization="Bearer open sesame")[0] == 200
    assert json.loads(running.get("/health"))["status"] == "ok"
    running.stop()


def test_a_generated_client_is_told_of_the_token_and_only_where_one_is_set(detector):
    described = make_service(detector, token="open sesame").openapi()
    (name,) = described["components"]["securitySchemes"]
    assert described["components"]["securitySchemes"][name] == {"type": "http", "scheme": "bearer"}
    asks = {
        path for path, methods in described["paths"].items() for one in methods.values() if "security" in one
    }
    assert asks == {"/detect", "/detect/many", "/metrics"}
    assert "Authorization: Bearer" in docs_page(described)
    without = make_service(detector).openapi()
    assert "securitySchemes" not in without["components"]
    assert "Authorization" not in docs_page(without)


def test_one_client_has_so_many_requests_a_minute(detector, monkeypatch):
    running = Running(detector, per_minute=2)
    assert [running.post(png(IMAGES[0]))[0] for _ in range(3)] == [200, 200, 429]
    monkeypatch.setattr(access, "MINUTE", 0.0)  # the next minute
    assert running.post(png(IMAGES[0]))[0] == 200
    running.stop()


def test_listening_to_others_is_said():
    assert opened("127.0.0.1", 8000, "") == ""
    assert "everyone, because no token is set" in opened("0.0.0.0", 8000, "")
    assert "whoever has the token" in opened("0.0.0.0", 8000, "t")
