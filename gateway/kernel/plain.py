"""The header format of messages that the broker itself publishes: properties, written down only to leave memory."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, cast

from gateway.kernel.message import Header, Properties, Value
from gateway.kernel.values import dumps, loads


class PlainFormat:
    """Keeps properties as a table of values."""

    name = "plain"

    def header(self, raw: bytes) -> Header:
        """Return the header of a message that comes back from the store."""
        properties = self.properties(raw)
        return Header(self, raw, is_persistent=properties.delivery_mode == 2, priority=properties.priority or 0)

    def properties(self, raw: bytes) -> Properties:
        """Read the properties back."""
        return Properties(**cast(Mapping[str, Any], loads(raw)))


PLAIN: Final = PlainFormat()


def plain_header(properties: Properties) -> Header:
    """Return a header that says this."""
    said: dict[str, Value] = {f.name: getattr(properties, f.name) for f in fields(Properties)}
    said["headers"] = dict(properties.headers)
    return PLAIN.header(dumps(said))
