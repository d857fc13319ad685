"""The container is shipped behind a proxy that checks host names and origins, which Streamlit does not."""

import re
from pathlib import Path

import pytest
import yaml
from dockerfile import stages

from idecode_core.files.names import ARCHIVE_BYTES

ROOT = Path(__file__).parents[2]
PROXY = (ROOT / "deploy" / "studio.conf.template").read_text(encoding="utf-8")
SERVICES = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]


def let_through(origin: str) -> bool:
    """What nginx's map says of an Origin header: equal to a listed one, without regard to case, or the default."""
    block = re.search(r"map \$http_origin \$origin_is_ours \{(.*?)\}\n\n", PROXY, re.DOTALL)
    assert block, "expected the map of origins"
    rows = re.findall(r"^\s+(\S+)\s+([01]);", block[1].replace("${STUDIO_HOST}", "studio.org"), re.MULTILINE)
    known = {key.strip('"').lower(): value == "1" for key, value in rows}
    return known.get(origin.lower(), known["default"])


@pytest.mark.parametrize("origin", ["", "https://studio.org", "HTTPS://STUDIO.ORG"])
def test_pages_of_the_studio_and_requests_without_a_page_are_let_through(origin: str) -> None:
    assert let_through(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "http://studio.org",
        "https://studio.org:8502",
        "https://studio.org.evil.com",
        "https://evil.com/studio.org",
        "https://xstudio.org",
        "https://studioXorg",
        "null",
    ],
)
def test_pages_of_others_are_not(origin: str) -> None:
    assert not let_through(origin)


def test_what_is_not_ours_is_refused_before_it_reaches_the_app() -> None:
    (location,) = re.findall(r"location / \{(.*?)\n    \}", PROXY, re.DOTALL)
    refusal, passing = (
        location.index("if ($origin_is_ours = 0) { return 403; }"),
        location.index("proxy_pass"),
    )
    assert refusal < passing
    default, ours = re.findall(r"^server \{.*?^\}", PROXY, re.DOTALL | re.MULTILINE)
    assert "default_server" in default
    assert "ssl_reject_handshake on;" in default
    assert "return 444;" in default
    assert "proxy_pass" not in default
    assert "server_name ${STUDIO_HOST};" in ours


def test_only_the_proxy_can_be_reached_and_it_knows_the_app() -> None:
    app, proxy = SERVICES["app"], SERVICES["proxy"]
    assert "ports" not in app
    assert proxy["ports"] == ["443:443"]
    (port,) = stages()[app["build"]["target"]].all("EXPOSE")
    assert f"proxy_pass http://app:{port};" in PROXY
    assert app["expose"] == [port]
    assert proxy["volumes"][0].startswith("./studio.conf.template:/etc/nginx/templates/")
    assert proxy["depends_on"]["app"]["condition"] == "service_healthy"


def test_the_largest_upload_passes_the_proxy() -> None:
    (megabytes,) = re.findall(r"client_max_body_size (\d+)m;", PROXY)
    assert int(megabytes) * 2**20 > ARCHIVE_BYTES
