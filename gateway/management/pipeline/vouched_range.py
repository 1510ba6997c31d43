"""The range of messages for which a leader vouches, so that another node of the cluster may read them in its copy.

The node asks as the client, so the leader checks the client's permissions. It offers its copies; if one of them is of
the leader's own epoch, the leader answers with the range that may be read there, and else with the messages.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

#: The header of a request by which a node offers its copies: ``CELL:EPOCH``, with commas between them.
OFFERED_COPIES: Final = "x-offered-copies"

#: The type of an answer that has a range instead of messages.
VOUCHED: Final = "application/vnd.gateway.vouched-range+json"

_OFFER: Final = re.compile(r"([1-9]\d{0,8}):([1-9]\d{0,18})", re.ASCII)

#: The numbers of a range: cell, epoch, stream id, first, end.
_NUMBERS: Final = 5

#: Cells that a node offers at most.
_MOST_OFFERS: Final = 1000


class LogPlace(NamedTuple):
    """A cell, and the epoch of its log: that of a leader, or that at which a copy has the data."""

    cell: int
    epoch: int


@dataclass(frozen=True, slots=True)
class VouchedRange:
    """The messages of one stream that a leader has confirmed, at the moment when it says so.

    ``stream_id`` is the stream in the logs of the leader's ``place``: within an epoch no other stream gets this number.
    The messages are those from ``first`` up to, not including, ``end``; retention has removed none of them.
    """

    place: LogPlace
    vhost: str
    name: str
    stream_id: int
    first: int
    end: int


def encode_offer(places: Mapping[int, int]) -> str:
    """Return the header for copies: cell to epoch."""
    return ",".join(f"{cell}:{epoch}" for cell, epoch in places.items())


def parse_offer(header: str) -> frozenset[LogPlace]:
    """Return the copies that a node offers; those that are malformed are left out, as if they did not exist."""
    found = (_OFFER.fullmatch(each) for each in header.split(",", _MOST_OFFERS))
    return frozenset(LogPlace(int(each[1]), int(each[2])) for each in found if each is not None)


def encode_vouched(vouched: VouchedRange) -> bytes:
    """Return the answer with a range."""
    return json.dumps(asdict(vouched), separators=(",", ":")).encode()


def decode_vouched(content: bytes) -> VouchedRange:
    """Return the range of an answer. :raises ValueError: if it has none: the leader is of another version."""
    try:
        fields = json.loads(content)
        numbers = [*fields["place"], fields["stream_id"], fields["first"], fields["end"]]
        texts = [fields["vhost"], fields["name"]]
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"no vouched range: {error!r}") from None
    if not all(type(number) is int and number >= 0 for number in numbers) or len(numbers) != _NUMBERS:
        raise ValueError("no vouched range: a number is missing")
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("no vouched range: a name is missing")
    cell, epoch, stream_id, first, end = numbers
    vhost, name = texts
    return VouchedRange(LogPlace(cell, epoch), vhost, name, stream_id, first, end)
