"""The columns of headers of AMQP and MQTT, read from their bytes.

Publishers who give each message an id or a topic of its own make a new header for each, so nothing can be cached.
"""

from typing import Final

from gateway.columnar.encoding.envelope_columns import HeaderColumns, header_columns, text
from gateway.columnar.encoding.envelope_rows import COLUMNS, EnvelopeRows
from gateway.kernel.caches import remember
from gateway_amqp.header import expiration_ms
from gateway_amqp.properties import scan_properties
from gateway_amqp.splices import check_table
from gateway_amqp.tables import LAST_SECOND, MalformedField, decode_table
from gateway_mqtt.translation.header import MQTT, mapping_of

_TIMESTAMP: Final = COLUMNS["message_timestamp"]
_DELIVERY_MODE: Final = COLUMNS["delivery_mode"]
_CLIENT_ID: Final = COLUMNS["client_id"]

#: AMQP's properties that are columns as they are.
_PLAIN: Final = {
    name: COLUMNS[name]
    for name in (
        "content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to", "expiration",
        "message_id", "type", "user_id", "app_id",
    )
}  # fmt: skip

#: Cached tables of headers. A full cache is cleared, which is cheaper than evicting single entries.
_MOST_KEPT: Final = 8192

#: Longer tables seldom repeat.
_LONGEST_KEPT: Final = 512


class AmqpHeaders:
    """Sets the columns of AMQP headers. Caches the columns of tables, which repeat more often than ids."""

    def __init__(self) -> None:
        self._tables: dict[bytes, HeaderColumns] = {}

    def put(self, header: bytes, routing_key: str, rows: EnvelopeRows) -> bool:
        """Set the columns, unless the header may have ``CC`` or ``BCC``.

        :raises MalformedField: for a header that :class:`gateway_amqp.header.AmqpHeaderFormat` refuses, too.
        :raises PreconditionFailed: likewise.
        """
        values = scan_properties(header)
        if b"CC" in header and "headers" in values:
            return False
        if "expiration" in values:
            expiration_ms(values["expiration"])
        headers = self._columns(values.pop("headers")) if "headers" in values else None
        seconds = values.pop("timestamp", LAST_SECOND + 1)
        for name, value in values.items():
            column = _PLAIN.get(name)
            if column is not None:
                rows.put(column, value)
        if seconds <= LAST_SECOND:
            rows.put(_TIMESTAMP, seconds * 1_000_000)
        if headers is not None:
            rows.put_headers(headers)
        return True

    def columns(self, table: bytes) -> HeaderColumns:
        """Return the columns of a table. :raises MalformedField: if it is one that ``put`` refuses."""
        if table not in self._tables and check_table(table) != len(table):
            raise MalformedField("bytes follow a table")
        return self._columns(table)

    def _columns(self, table: bytes) -> HeaderColumns:
        found = self._tables.get(table)
        if found is None:
            headers, _ = decode_table(table)
            found = header_columns(headers)
            if len(table) <= _LONGEST_KEPT:
                remember(self._tables, table, found, _MOST_KEPT)
        return found


def put_mqtt_header(header: bytes, routing_key: str, rows: EnvelopeRows) -> bool:
    """Set the columns of an MQTT header, unless the message has properties or the broker added headers.

    :raises MqttError: if this version did not write the header.
    """
    found = MQTT.header(header)
    fields = found.fields
    if fields.block or fields.added:
        return False
    topic = text(mapping_of(fields).topic(routing_key))
    rows.put(_CLIENT_ID, fields.client_id.decode(errors="replace"))
    rows.put(_DELIVERY_MODE, 2 if found.qos else 1)
    rows.put_mqtt(topic, found.qos, found.is_retained)
    return True
