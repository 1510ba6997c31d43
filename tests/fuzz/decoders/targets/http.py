"""Decoders of the HTTP API: JSON bodies, queries, rows of the sink, certificates."""

import json
from base64 import b64encode
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL, crypto

from gateway.kernel.errors import PreconditionFailed
from gateway.management.http import bodies, request_info
from gateway.management.http.errors import HttpError
from gateway.management.messages import properties_of
from gateway.management.pipeline.rows import RowDefaults, RowReader
from gateway.management.resources.virtual_hosts.definitions import decoded_document
from gateway.management.web.request import Request
from gateway.net.certificates import crypto_chain, host_names
from gateway.plugins.services.http_resource import HttpRequest
from tests.fuzz.decoders.corpus import frames_of
from tests.fuzz.decoders.json_tokens import JSON_TOKENS
from tests.fuzz.decoders.laws import attempt, refused, require, require_same
from tests.fuzz.decoders.target import Target


class _Connection:
    """The connection of a request: nothing is sent."""

    def read_body(self) -> None:
        pass

    def promote(self) -> None:
        pass


def _body(data: bytes) -> None:
    """A JSON body becomes an object within its bounds, or is refused."""
    fields = attempt(HttpError, bodies.parse_object, data)
    document = attempt(HttpError, lambda: _finished(decoded_document(data)))
    if refused(fields):
        return
    encoded = json.dumps(fields, ensure_ascii=False).encode()  # the log and the listings write it
    require_same("an object is encoded as it was decoded", bodies.parse_object(encoded) if fields else {}, fields)
    require(not refused(document) or not data.strip(), "definitions are JSON too", document)
    for name, value in list(fields.items())[:20]:
        attempt(HttpError, bodies.integer, value, name)
        attempt(HttpError, bodies.boolean, fields, name)
        attempt(HttpError, bodies.text, fields, name)
        attempt(HttpError, bodies.arguments, fields, name)
        attempt(HttpError, bodies.tags, value)
    attempt(HttpError, properties_of, fields)


def _finished(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _query(data: bytes) -> None:
    """Query, path and credentials of a request are decoded, or refused."""
    target, _, header = data.partition(b"\n")
    request = Request(_Connection(), "GET", target.decode("latin-1"), [(b"Authorization", header)], "", is_local=True)  # type: ignore[arg-type]  # what it uses
    query = attempt(HttpError, request_info.query_of, request)
    for name, value in [] if refused(query) else list(query.items())[:20]:
        attempt(HttpError, request_info.values_of, request, name)
        bodies.digits(value)
        attempt(HttpError, bodies.base64, value)
    attempt(HttpError, request_info.credentials_of, request)
    for segment in request.path.split("/")[:20]:
        attempt(HttpError, request_info.decoded, segment)


def _rows(data: bytes) -> None:
    """Rows of the sink become messages, or the part is refused."""
    reader = RowReader(RowDefaults("e", "k"))
    rows = attempt(HttpError, lambda: [message for run in reader.runs(data) for message in run.messages()])
    for message in [] if refused(rows) else rows:
        require(message.body in data, "the body of a row is part of what was sent", message.body)
        require(message.properties.delivery_mode in (1, 2), "a row has a delivery mode", message.properties)


def _plugin_body(data: bytes) -> None:
    """The body of a request to a plugin is a JSON object, or is refused; certificates are read or refused."""
    request: Any = HttpRequest("POST", {}, {}, data, _USER, _USER)
    attempt(PreconditionFailed, lambda: request.fields)
    names = attempt(ValueError, host_names, data)
    attempt((ValueError, SSL.Error, crypto.Error), crypto_chain, data)
    require(refused(names) or all(name == name.lower() for name in names), "names are in lower case", names)


_USER: Final[Any] = None


def _plugin_body_seeds() -> Iterable[bytes]:
    yield b'{"a": 1}'
    yield b""
    yield _certificate("a.example", "*.b.example")


def _certificate(*names: str) -> bytes:
    """Return a certificate for names of hosts, which signs itself, in PEM."""
    key = ed25519.Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 7)
    builder = builder.not_valid_before(_BEGIN).not_valid_after(_BEGIN + timedelta(days=1))
    hosts = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
    return builder.add_extension(hosts, critical=False).sign(key, None).public_bytes(Encoding.PEM)


_BEGIN: Final = datetime(2024, 1, 1, tzinfo=UTC)


def _body_seeds() -> Iterable[bytes]:
    for frame in frames_of("http", ">"):
        _, found, body = frame.partition(b"\r\n\r\n")
        if found and body:
            yield body
    yield json.dumps(
        {"durable": True, "auto_delete": "false", "arguments": {"x-max-length": 5}, "tags": "a,b",
        "properties": {"headers": {}, "priority": 5, "timestamp": 1},
         "routing_key": "k", "payload": "x", "payload_encoding": "string", "count": "5", "n": [1.5, None, {"a": []}]}
    ).encode()  # fmt: skip


def _query_seeds() -> Iterable[bytes]:
    login = b"\nBasic " + b64encode(b"guest:guest")
    yield b"/api/queues/%2F/q?page=1&page_size=50&name=a%20b&use_regex=true&columns=name,messages" + login
    yield b"/api/overview?lengths_age=60&lengths_incr=5\nBearer abc"
    for frame in frames_of("http", ">"):
        words = frame.split(b"\r\n", 1)[0].split(b" ")
        if len(words) == 3:
            yield words[1] + login


def _row(head: object, body: bytes) -> bytes:
    encoded = b"" if head is None else json.dumps(head).encode()
    return len(encoded).to_bytes(4) + len(body).to_bytes(4) + encoded + body


def _row_seeds() -> Iterable[bytes]:
    yield _row(
        {"exchange": "", "routing_key": "q", "properties": {"priority": 5, "timestamp": 1}, "headers": {"a": "b"}},
        b"one",
    ) + _row(None, b"two")
    yield _row(
        {"headers_json": '{"a":{"$":["bytes","aGk="]},"CC":["x"],"BCC":["y"]}', "properties": {"expiration": "60000"}},
        b"",
    )


TARGETS: Final = (
    Target(
        "http-bodies",
        _body,
        (
            "gateway.management.http.bodies:parse_object",
            "gateway.management.resources.virtual_hosts.definitions:decoded_document",
            "gateway.management.messages:properties_of",
        ),
        _body_seeds,
        JSON_TOKENS,
    ),
    Target(
        "http-queries",
        _query,
        (
            "gateway.management.http.request_info:decoded",
            "gateway.management.http.request_info:query_of",
            "gateway.management.http.request_info:credentials_of",
            "gateway.management.http.bodies:base64",
        ),
        _query_seeds,
        (b"?", b"&", b"=", b"%2F", b"%FF", b"%00", b"Basic ", b"Bearer ", b"page=1", b"page_size=500", b"\n"),
    ),
    Target(
        "http-plugin-bodies",
        _plugin_body,
        (
            "gateway.plugins.services.http_resource:HttpRequest.fields",
            "gateway.net.certificates:host_names",
            "gateway.net.certificates:crypto_chain",
        ),
        _plugin_body_seeds,
        (*JSON_TOKENS, b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----", b"MII", b"==\n"),
    ),
    Target(
        "http-rows",
        _rows,
        ("gateway.management.pipeline.rows:RowReader.runs",),
        _row_seeds,
        (*JSON_TOKENS, b'"headers_json":', b'"properties":', b'"exchange":', b"\0\0\0\0", b"\0\0\0\2{}"),
    ),
)
