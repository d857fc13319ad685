"""The service's description: a client can be generated from it."""

# ruff: noqa: F811  `service` is a fixture of another file

import json
import re

from test_serve import detector, service  # noqa: F401  fixtures


def test_a_client_can_be_generated_and_the_page_loads_nothing_from_elsewhere(service):
    described = json.loads(service.get("/openapi.json"))
    one = described["paths"]["/detect"]["post"]
    assert {*one["requestBody"]["content"]} == {"application/octet-stream", "multipart/form-data"}
    assert {given["name"] for given in one["parameters"]} == {"n", "epsilon", "delta", "seed"}
    assert {"200", "413", "422", "503"} <= {*one["responses"]}
    files = described["paths"]["/detect/many"]["post"]["requestBody"]["content"]["multipart/form-data"][
        "schema"
    ]
    assert files["properties"]["file"]["type"] == "array"
    page = service.get("/docs").decode()
    assert "POST /detect/many" in page
    assert "?epsilon=" in page
    assert not re.search("<script|src=|https?://", page)
