"""The port of schema languages: a schema of bodies gives columns, and decodes each body to their values."""

from typing import Any, Protocol

import pyarrow as pa

from gateway.kernel.errors import GatewayError


class BodyRefused(GatewayError):
    """A body that does not match its schema. The text is the reason."""


class BodySchema(Protocol):
    """A schema of bodies. ``kind`` is the Arrow type of a body: a struct for a record, whose fields become columns."""

    @property
    def kind(self) -> pa.DataType:
        """The type of the values that ``decode`` returns."""
        ...

    def decode(self, body: bytes) -> Any:  # Any: a value of ``kind``
        """Return the value of a body as ``pyarrow.array`` takes it for ``kind``.

        :raises BodyRefused: if the body does not match the schema.
        """
        ...


TIMESTAMP: pa.DataType = pa.timestamp("us", tz="UTC")

#: The first and the last time that readers of tables can represent: the years 1 to 9999, in µs since 1970.
EARLIEST_US = -62_135_596_800_000_000
LATEST_US = 253_402_300_799_999_999


def list_of(item: pa.DataType) -> pa.DataType:
    """Return the type of lists, with the name of items that Spark and Iceberg use."""
    return pa.list_(pa.field("element", item))


def moment_us(microseconds: int) -> int:
    """Return a time in µs since 1970. :raises BodyRefused: if it is not in the years 1 to 9999."""
    if not EARLIEST_US <= microseconds <= LATEST_US:
        raise BodyRefused(f"the time {microseconds} µs since 1970 is not in the years 1 to 9999")
    return microseconds
