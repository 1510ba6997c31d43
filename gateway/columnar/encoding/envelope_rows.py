"""The columns of many envelopes as lists, in which an empty column costs nothing.

Messages set few of the columns. So a list gets the nulls before a value only when the value comes.
"""

from array import array
from typing import Any, Final

from gateway.columnar.encoding.envelope_columns import EnvelopeColumns, HeaderColumns

COLUMNS: Final = {name: number for number, name in enumerate(EnvelopeColumns._fields)}
"""The number of each column by its name."""

_EXCHANGE: Final = COLUMNS["exchange"]
_ROUTING_KEY: Final = COLUMNS["routing_key"]
_PROTOCOL: Final = COLUMNS["protocol"]
_HEADERS_JSON: Final = COLUMNS["headers_json"]
_X_DEATH: Final = COLUMNS["x_death"]

#: Columns with lists of their own, or without values.
_SEPARATE: Final = frozenset(COLUMNS[name] for name in ("redelivered", "headers", "headers_json", "x_death", "mqtt"))


class EnvelopeRows:
    """Envelopes as rows; ``count`` of them are complete.

    ``values`` has a list for each column, in the order of ``EnvelopeColumns``; a list that is shorter than ``count``
    ends with nulls. The headers of all rows are in ``header_names`` and ``header_texts``; those of a row end where
    ``header_ends`` says, which begins with 0. ``topics``, ``qos`` and ``retain`` are the members of ``mqtt``.
    """

    __slots__ = ("count", "header_ends", "header_names", "header_texts", "qos", "retain", "topics", "values")

    def __init__(self) -> None:
        self.count = 0
        self.values: list[list[Any]] = [[] for _ in COLUMNS]
        self.header_names: list[str] = []
        self.header_texts: list[str | None] = []
        self.header_ends = array("i", [0])
        self.topics: list[Any] = []
        self.qos: list[Any] = []
        self.retain: list[Any] = []

    def put(self, column: int, value: object) -> None:
        """Set a column of the row at hand."""
        _put(self.values[column], self.count, value)

    def put_names(self, exchange: str, routing_key: str, protocol: str) -> None:
        """Set the columns that each row has."""
        self.values[_EXCHANGE].append(exchange)
        self.values[_ROUTING_KEY].append(routing_key)
        self.values[_PROTOCOL].append(protocol)

    def put_headers(self, headers: HeaderColumns) -> None:
        """Set the columns of the headers."""
        for name, text in headers.headers:
            self.header_names.append(name)
            self.header_texts.append(text)
        self.put(_HEADERS_JSON, headers.headers_json)
        if headers.x_death is not None:
            self.put(_X_DEATH, headers.x_death)

    def put_mqtt(self, topic: str, qos: int, retain: bool) -> None:
        """Set the column of the properties that only MQTT has."""
        _put(self.topics, self.count, topic)
        _put(self.qos, self.count, qos)
        _put(self.retain, self.count, retain)

    def put_all(self, columns: EnvelopeColumns) -> None:
        """Set all columns."""
        for number, value in enumerate(columns):
            if value is not None and number not in _SEPARATE:
                self.put(number, value)
        if columns.headers:
            self.put_headers(HeaderColumns(columns.headers, columns.headers_json, columns.x_death))
        if columns.mqtt is not None:
            self.put_mqtt(columns.mqtt["topic"], columns.mqtt["qos"], columns.mqtt["retain"])

    def end_row(self) -> None:
        """Complete the row at hand, and begin another."""
        self.header_ends.append(len(self.header_names))
        self.count += 1

    def end_rows(self, count: int) -> None:
        """Complete rows without values."""
        self.header_ends.extend([len(self.header_names)] * count)
        self.count += count

    def complete(self) -> None:
        """Fill up the lists that have any value."""
        for values in (*self.values, self.topics, self.qos, self.retain):
            if values:
                values.extend([None] * (self.count - len(values)))


def _put(values: list[Any], row: int, value: object) -> None:
    missing = row - len(values)
    if missing > 0:
        values.extend([None] * missing)
    values.append(value)
