"""Maximum ages of streams: a number and a unit, as in ``7D``."""

import re
from collections.abc import Mapping
from typing import Final

from gateway.kernel.messages.message import Value

#: Years, months, days, hours, minutes and seconds, in milliseconds; as in RabbitMQ a month has 30 days and a year 365.
UNITS_MS: Final[Mapping[str, int]] = {
    "Y": 365 * 86_400_000,
    "M": 30 * 86_400_000,
    "D": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
}

_AGE: Final = re.compile(r"([0-9]{1,9})([YMDhms])")


def age_ms(value: Value) -> int | None:
    """Return an age in milliseconds; ``None`` if it is invalid or zero."""
    found = _AGE.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else int(found[1]) * UNITS_MS[found[2]] or None
