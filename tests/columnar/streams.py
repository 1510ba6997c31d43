"""Messages of every protocol as stream chunks, and their conversion to rows."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from gateway.columnar.encoding.formats import envelope_reader
from gateway.columnar.encoding.messages import MessageColumns
from gateway.columnar.encoding.pieces import Piece
from gateway.kernel.messages.chunks import encode_chunk
from gateway.kernel.messages.contents import ContentWriter
from gateway.kernel.messages.message import Header, Message, Properties
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties

NOON_MS = 1_700_000_000_000 - 1_700_000_000_000 % 86_400_000 + 43_200_000
MIDNIGHT_MS = NOON_MS + 43_200_000


def amqp(properties: Properties | None = None) -> Header:
    """Return a header as an AMQP client sends it."""
    return AMQP.header(encode_properties(properties or Properties()))


def message(body: bytes = b"body", header: Header | None = None, routing_key: str = "key") -> Message:
    return Message("exchange", routing_key, header or amqp(), body)


def chunk(messages: Sequence[Message], *, first: int = 0, at_ms: int = NOON_MS, step_ms: int = 1) -> bytes:
    """Return a chunk of these messages, one every ``step_ms``."""
    writer = ContentWriter()
    entries = [(at_ms + index * step_ms, b"filter", writer.encode(each)) for index, each in enumerate(messages)]
    return encode_chunk(first, entries)


def pieces(chunks: Sequence[bytes], first: int = 0, end: int = 1 << 60) -> list[Piece]:
    return list(MessageColumns(envelope_reader()).pieces(chunks, first, end, vhost="/", queue="q", partition=0))


def rows(chunks: Sequence[bytes], first: int = 0, end: int = 1 << 60) -> list[dict[str, Any]]:
    return [row for piece in pieces(chunks, first, end) for row in piece.batch.to_pylist(maps_as_pydicts="strict")]


def read_stream(data: bytes) -> pa.Table:
    """Return the table that an Arrow reader gets from a stream."""
    return pa.ipc.open_stream(data).read_all()
