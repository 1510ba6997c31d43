"""Conversion of envelopes to rows: directly for the protocols that can, for the others by way of their properties."""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gateway.columnar.encoding.envelope_columns import EnvelopeColumns, EnvelopeDecoder, text
from gateway.columnar.encoding.envelope_rows import EnvelopeRows
from gateway.kernel.caches import remember
from gateway.kernel.errors import GatewayError
from gateway.kernel.messages.contents import decode_content, names_and_header

PutHeader: TypeAlias = Callable[[bytes, str, EnvelopeRows], bool]
"""Sets the columns of a header, given the routing key; returns whether it can, and sets none if not.

It sets none either if it raises an error of ``UNREADABLE``.
"""

UNREADABLE: Final = (GatewayError, KeyError, ValueError)
"""The errors for a header that this version cannot read."""

#: Cached envelopes and names. A full cache is cleared, which is cheaper than evicting single entries.
_MOST_KEPT: Final = 8192

#: Longer ones are not cached: they seldom repeat, and would fill the memory.
_LONGEST_KEPT: Final = 512


class EnvelopeReader:
    """Adds envelopes to rows. ``direct`` has the functions of header formats, by the format's name.

    A format without one is read by the decoder, and so is a header that its function cannot put. The columns of such
    an envelope are cached.
    """

    def __init__(self, decoder: EnvelopeDecoder, direct: Mapping[str, PutHeader]) -> None:
        self._decoder = decoder
        self._direct = direct
        self._columns: dict[bytes, EnvelopeColumns] = {}
        self._names: dict[bytes, tuple[str, str, str, str]] = {}

    def add(self, envelope: bytes, rows: EnvelopeRows) -> None:
        """Add a row. :raises UnreadableRecord: if the envelope is incomplete; then the rows are of no use."""
        found = self._columns.get(envelope)
        if found is not None:
            rows.put_all(found)
        elif not self._put_directly(envelope, rows):
            columns = self._decoder.columns(decode_content(envelope))
            if len(envelope) <= _LONGEST_KEPT:
                remember(self._columns, envelope, columns, _MOST_KEPT)
            rows.put_all(columns)
        rows.end_row()

    def _put_directly(self, envelope: bytes, rows: EnvelopeRows) -> bool:
        names, header = names_and_header(envelope)
        known = self._names.get(names)
        if known is None:
            stored = decode_content(envelope)
            known = (text(stored.exchange), text(stored.routing_key), stored.header_format, stored.routing_key)
            if len(names) <= _LONGEST_KEPT:
                remember(self._names, names, known, _MOST_KEPT)
        exchange, routing_key, protocol, exact_key = known
        put = self._direct.get(protocol)
        if put is None:
            return False
        try:
            if not put(header, exact_key, rows):
                return False
        except UNREADABLE:
            return False
        rows.put_names(exchange, routing_key, protocol)
        return True
