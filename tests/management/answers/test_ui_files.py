"""The files of the web UI over HTTP: paths, headers and caching, and the digests of vendored libraries."""

import gzip
import re
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

from gateway.management.ui.page_answers import content_policy
from gateway.management.ui.static_files import CONTENT_TYPES, StaticFiles
from tests.management.console import Answer, Console, is_complete, parsed

STATIC = Path(__file__).parents[3] / "gateway/management/ui/static"
VENDOR = STATIC / "vendor"
OWN = sorted(path for path in STATIC.rglob("*") if path.is_file() and VENDOR not in path.parents)


def request(console: Console, path: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request outside ``/api``, without credentials."""
    given = {"Host": "127.0.0.1:15672"} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    transport = console.send_raw("\r\n".join(lines).encode() + b"\r\n\r\n")
    assert is_complete(transport.value(), method)
    return parsed(transport.value(), method)


def test_the_page_is_served_without_a_login(console: Console) -> None:
    answer = request(console, "/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.content == (STATIC / "index.html").read_bytes()


@pytest.mark.parametrize("name", ["app.js", "icon.svg", "css/base.css", "pages/queues/queue.js", "vendor/VENDORED.md"])
def test_each_file_is_served_with_its_type(console: Console, name: str) -> None:
    path = STATIC / name
    answer = request(console, f"/{name}")
    assert (answer.status, answer.content) == (200, path.read_bytes())
    assert answer.headers["content-type"].startswith(
        CONTENT_TYPES[path.suffix[1:]] if path.suffix != ".md" else "text/plain"
    )


def test_scripts_styles_and_requests_of_other_hosts_are_forbidden(console: Console) -> None:
    policy = request(console, "/").headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["img-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in policy


def test_websockets_of_the_same_host_are_permitted() -> None:
    addresses = {"amqp": ("127.0.0.1", 5672), "web_mqtt": ("127.0.0.1", 15675)}
    for name in ("localhost", "[::1]", "192.0.2.1"):
        policy = content_policy(f"{name}:15672", addresses)
        assert f"connect-src 'self' ws://{name}:15675 wss://{name}:15675;" in policy


def test_an_invalid_host_is_not_part_of_the_policy() -> None:
    assert "connect-src 'self';" in content_policy("a; script-src *", {"web_mqtt": ("127.0.0.1", 15675)})


def test_pages_are_neither_framed_nor_sniffed(console: Console) -> None:
    headers = request(console, "/").headers
    assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("DENY", "nosniff")
    assert headers["referrer-policy"] == "no-referrer"


def test_an_unchanged_file_is_not_sent_again(console: Console) -> None:
    first = request(console, "/app.js")
    assert first.headers["cache-control"] == "no-cache"
    again = request(console, "/app.js", If_None_Match=first.headers["etag"])
    assert (again.status, again.content) == (304, b"")
    assert request(console, "/app.js", If_None_Match='"other"').status == 200


def test_a_file_is_compressed_for_clients_that_accept_it(console: Console) -> None:
    answer = request(console, "/app.js", Accept_Encoding="gzip, br")
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(answer.content) == (STATIC / "app.js").read_bytes()


@pytest.mark.parametrize(
    "path", ["/absent.js", "/lib", "/lib/", "/../site.py", "/%2e%2e/site.py", "/lib/../app.js", "/a"]
)
def test_other_paths_are_not_found(console: Console, path: str) -> None:
    assert request(console, path).status == 404


def test_a_file_cannot_be_changed(console: Console) -> None:
    answer = request(console, "/app.js", "PUT", Content_Length="0")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_head_returns_the_headers_of_a_file(console: Console) -> None:
    answer = request(console, "/app.js", "HEAD")
    assert (answer.status, answer.content) == (200, b"")
    assert answer.headers["content-length"] == str((STATIC / "app.js").stat().st_size)


def test_all_files_are_found_in_the_package() -> None:
    files = StaticFiles()
    assert all(files.file(f"/{path.relative_to(STATIC).as_posix()}") for path in OWN)


def test_a_wheel_contains_all_files() -> None:
    project = tomllib.loads((STATIC.parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = project["tool"]["setuptools"]["package-data"]["gateway.management.ui"]
    packed = {path for pattern in patterns for path in STATIC.parent.glob(pattern) if path.is_file()}
    assert packed == {path for path in STATIC.rglob("*") if path.is_file()}


def test_vendored_files_have_the_listed_digests() -> None:
    rows = re.findall(r"^\| `(\S+)` \|.*`([0-9a-f]{64})` \|$", (VENDOR / "VENDORED.md").read_text(), re.MULTILINE)
    found = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()}
    licences = {name for name in found if "LICENSE" in name}
    assert {name for name, _ in rows} == found - licences - {"VENDORED.md"}
    for name, digest in rows:
        assert sha256((VENDOR / name).read_bytes()).hexdigest() == digest


def test_modules_import_only_files_of_the_package() -> None:
    for path in OWN:
        imported = re.findall(
            r"""^\S.* from "(.+)";$|import\("([^"]+)"\)""", path.read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in ("".join(names) for names in imported):
            assert (path.parent / name).resolve().is_file(), f"{path.name} imports {name}"


def test_no_file_interprets_text_or_names_another_host() -> None:
    forbidden = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "dangerouslySetInnerHTML",
        "eval(",
        "https://",
        " style=",
    )
    for path in OWN:
        text = path.read_text(encoding="utf-8")
        assert [word for word in forbidden if word in text] == [], path.name
