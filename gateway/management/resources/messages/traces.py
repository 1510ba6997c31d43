"""/traces and /trace-files: traces of messages in files, as RabbitMQ's tracing plugin has them."""

from pathlib import Path
from typing import Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import digits, require, text
from gateway.management.http.call import Call
from gateway.management.http.downloads import Download, Extent
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.trace_files.trace_file import FORMATS, TraceFile, TraceRequest

routes = Routes()

#: RabbitMQ's plugin reads the firehose as this user; traces here need no connection.
_LOGIN: Final = ("tracer_connection_username", "tracer_connection_password")

_TEXT: Final = {"Content-Type": "text/plain; charset=utf-8"}

_LEVEL: Final = AccessLevel.ADMINISTRATOR


@routes.get("/traces", "/traces/node/<node>", level=_LEVEL)
def traces(call: Call, node: str = "") -> list[Fields]:
    """List the running traces."""
    _require_node(call, node)
    return [_view(trace) for trace in call.context.trace_files]


@routes.get("/traces/<vhost>", "/traces/node/<node>/<vhost>", level=_LEVEL)
def in_vhost(call: Call, vhost: str, node: str = "") -> list[Fields]:
    """List the running traces of a virtual host."""
    _require_node(call, node)
    call.vhost(vhost)
    return [_view(trace) for trace in call.context.trace_files if trace.vhost == vhost]


@routes.get("/traces/<vhost>/<name>", "/traces/node/<node>/<vhost>/<name>", level=_LEVEL)
def trace(call: Call, vhost: str, name: str, node: str = "") -> Fields:
    """Return a running trace."""
    _require_node(call, node)
    found = call.context.trace_files.find(vhost, name)
    if found is None:
        raise missing()
    return _view(found)


@routes.put("/traces/<vhost>/<name>", "/traces/node/<node>/<vhost>/<name>", level=_LEVEL)
def start(call: Call, vhost: str, name: str, node: str = "") -> Reply:
    """Start a trace that writes to the file ``NAME.log``, or replace it."""
    _require_node(call, node)
    virtual_host, fields = call.writable_vhost(vhost), call.fields
    return put_reply(call.context.trace_files.start(virtual_host, _request(name, fields)))


@routes.delete("/traces/<vhost>/<name>", "/traces/node/<node>/<vhost>/<name>", level=_LEVEL)
def stop(call: Call, vhost: str, name: str, node: str = "") -> None:
    """Stop a trace; its file stays."""
    _require_node(call, node)
    if not call.context.trace_files.stop(vhost, name):
        raise missing()


@routes.get("/trace-files", "/trace-files/node/<node>", level=_LEVEL)
def files(call: Call, node: str = "") -> list[Fields]:
    """List the files of traces."""
    _require_node(call, node)
    return [{"name": name, "size": size} for name, size in call.context.trace_files.files()]


@routes.get("/trace-files/<name>", "/trace-files/node/<node>/<name>", level=_LEVEL)
def file(call: Call, name: str, node: str = "") -> Download:
    """Return the content of a file, as text; with ``tail``, its last bytes only."""
    _require_node(call, node)
    tail = digits(call.query.get("tail", "0"))
    if tail is None or tail < 0:
        raise bad_request(f"tail must be a number of bytes, not '{call.query['tail']}'")
    path = call.context.trace_files.path_of(name)
    download = None if path is None else Download.of_file(path, [_end_of(path, tail)], b"", _TEXT)
    if download is None:
        raise missing()
    return download


@routes.delete("/trace-files/<name>", "/trace-files/node/<node>/<name>", level=_LEVEL)
def delete_file(call: Call, name: str, node: str = "") -> None:
    """Delete a file, unless a trace writes to it."""
    _require_node(call, node)
    if call.context.trace_files.path_of(name) is None:
        raise missing()
    call.context.trace_files.delete(name)


def _end_of(path: Path, tail: int) -> Extent:
    """Return the last ``tail`` bytes of a file; all of it for 0."""
    size = path.stat().st_size
    return Extent(max(0, size - tail), min(size, tail)) if tail else Extent(0, size)


def _request(name: str, fields: Fields) -> TraceRequest:
    """Parse the body of a request, with RabbitMQ's error texts."""
    require(fields, "format", "pattern")
    limit = fields.get("max_payload_bytes")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        raise bad_request("max_payload_bytes not integer")
    if fields["format"] not in FORMATS:
        raise bad_request("format not json or text")
    for login in _LOGIN:
        if fields.get(login):
            raise bad_request(f"{login} has no effect: a trace needs no connection")
    return TraceRequest(name, fields["format"], text(fields, "pattern"), limit)


def _view(trace: TraceFile) -> Fields:
    request, writer = trace.request, trace.writer
    limit = {} if request.max_payload_bytes is None else {"max_payload_bytes": request.max_payload_bytes}
    return {
        "name": request.name,
        "vhost": trace.vhost,
        "format": request.format,
        "pattern": request.pattern,
        **limit,
        "lines": writer.lines,
        "left_out": writer.left_out,
        "error": writer.error,
    }


def _require_node(call: Call, node: str) -> None:
    """Check the node of a path that has one. :raises HttpError: if there is no such node."""
    if node not in ("", call.broker.node):
        raise missing()
