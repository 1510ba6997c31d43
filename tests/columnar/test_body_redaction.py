"""Replacement of parts of bodies before they are written to an archive."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gateway.columnar.encoding.body_redaction import BodyRedaction
from gateway.columnar.encoding.worker import Worker
from gateway.kernel.messages.json_path import JsonPath
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request
from tests.columnar.streams import chunk, message, pieces


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", "***"),
        ("$.a", {"a": "***", "b": [{"c": 2}, {"c": 3, "d": 4}, 5]}),
        ("$.b[*].c", {"a": {"x": 1}, "b": [{"c": "***"}, {"c": "***", "d": 4}, 5]}),
        ("$.*", {"a": "***", "b": "***"}),
        ("$.b.*", {"a": {"x": 1}, "b": ["***", "***", "***"]}),
        ("$.a.x", {"a": {"x": "***"}, "b": [{"c": 2}, {"c": 3, "d": 4}, 5]}),
    ],
)
def test_paths(path: str, expected: object) -> None:
    value = {"a": {"x": 1}, "b": [{"c": 2}, {"c": 3, "d": 4}, 5]}
    assert JsonPath.parse(path).redact(value) == expected
    assert value["a"] == {"x": 1}, "the value itself stays"


@pytest.mark.parametrize("path", ["$.none", "$.a.none", "$.a[*]", "$.a.x.y", "$.b[*].c.d"])
def test_a_path_that_finds_nothing_changes_nothing(path: str) -> None:
    value = {"a": {"x": 1}, "b": [{"c": 2}]}
    if path != "$.a[*]":
        assert JsonPath.parse(path).redact(value) is value
    else:
        assert JsonPath.parse(path).redact({"a": 1}) == {"a": 1}


def redacted(body: bytes, *rules: tuple[str, str], routing_key: str = "eu.paid") -> bytes:
    [piece] = BodyRedaction(rules).pieces(pieces([chunk([message(routing_key=routing_key, body=body)])]))
    [found] = piece.batch.column("body").to_pylist()
    assert isinstance(found, bytes)
    return found


def test_bodies_are_redacted_by_routing_key() -> None:
    body = b'{ "card": "4111", "sum": 1.50 }'
    assert json.loads(redacted(body, ("eu.*", "$.card"))) == {"card": "***", "sum": 1.5}
    assert redacted(body, ("us.*", "$.card")) == body
    assert redacted(body, ("*", "$.none")) == body
    assert json.loads(redacted(body, ("*", "$.card"), ("eu.paid", "$.sum"))) == {"card": "***", "sum": "***"}
    assert redacted(body, ("eu", "$.card")) == body


@pytest.mark.parametrize("body", [b"card=4111", b"\xff\x00", b" ", b"[" * 100_000])
def test_a_body_that_is_not_json_is_replaced_as_a_whole(body: bytes) -> None:
    assert redacted(body, ("*", "$.card")) == b"***"


@pytest.mark.parametrize("path", ["$", "$.card"])
def test_an_empty_body_stays_empty(path: str) -> None:
    assert redacted(b"", ("*", path)) == b""


@pytest.mark.parametrize("body", [b'{"card": "4111", "card": "4222"}', b'{"a": {"card": "4111"}, "a": 1}'])
def test_a_body_that_names_a_member_twice_is_replaced_as_a_whole(body: bytes) -> None:
    assert redacted(body, ("*", "$.card")) == redacted(body, ("*", "$.a.card")) == b"***"


def segment(**fields: Any) -> Frame:
    rows = chunk([message(body=b'{"card":"4111","n":%d}' % number) for number in range(3)])
    return Frame({"from": 0, "to": 3, "redact": [["*", "$.card"]], **fields}, rows)


def test_files_of_both_formats_have_redacted_bodies(tmp_path: Path) -> None:
    head = request(address_in(tmp_path), 0, 3)
    assert "error" not in Worker().answer(segment(**head)).head
    expected = [(b'{"card":"***","n":%d}' % number,) for number in range(3)]
    assert query(tmp_path, "body", rest='ORDER BY "offset"') == expected
    table = {"do": "table", "table": str(tmp_path / "archive"), "kind": "messages", "stem": "queue-q-1", "says": {}}
    answer = Worker().answer(segment(**table, vhost="/", queue="q", path=None))
    [file] = answer.head["files"]
    found = pq.read_table(tmp_path / "archive" / file, columns=["body"]).to_pydict()["body"]
    assert [(body,) for body in found] == expected
