"""The messages published at a fake broker: staged rows of committed batches, without duplicates."""

import json
from typing import Any

from gateway_spark.framing import LENGTHS
from tests.pipeline.fake_broker import FakeBroker


def published(broker: FakeBroker) -> list[tuple[dict[str, Any], bytes]]:
    """Return head and body of each message, in the order of publishing."""
    batches = {
        (commit.get("producer"), commit.get("query"), commit.get("batch")): commit for commit in broker.commits[::-1]
    }
    found = []
    for commit in list(batches.values())[::-1]:
        for attempt, parts, _ in commit["attempts"]:
            for part in range(parts):
                found += _rows(broker.parts[attempt, str(part)])
    return found


def _rows(part: bytes) -> list[tuple[dict[str, Any], bytes]]:
    rows, place, head = [], 0, b""
    while place < len(part):
        head_size, body_size = LENGTHS.unpack_from(part, place)
        place += LENGTHS.size
        head = part[place : place + head_size] or head
        place += head_size
        rows.append((json.loads(head), part[place : place + body_size]))
        place += body_size
    return rows
