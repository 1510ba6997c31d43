"""The retained messages of MQTT as of a moment, from the archive of the exchange that MQTT publishes to.

An archive has every publish in its order, with its flag ``retain``: so the state of any moment follows from it, by the
rules of MQTT. The last publish to a topic counts; one without a body clears it (MQTT-3.3.1-6); an expired one is gone.
A dead letter keeps the flag, but is no publish of a client, so it is not retained.
"""

from typing import Final

SCHEMA: Final = "retained"

_STATE: Final = """
CREATE MACRO {macro}(moment) AS TABLE
SELECT unnest(latest)
FROM (
    SELECT max_by(each, (each.timestamp, each."offset")) AS latest
    FROM {archive} AS each
    WHERE each.timestamp <= CAST(moment AS TIMESTAMPTZ) AND each.mqtt.retain AND each.x_death IS NULL
    GROUP BY each.routing_key
)
WHERE octet_length(latest.body) > 0 AND (
    latest.expiration IS NULL
    OR latest.timestamp + to_milliseconds(CAST(latest.expiration AS BIGINT)) > CAST(moment AS TIMESTAMPTZ)
)
"""


def state_at(macro: str, archive: str) -> str:
    """Return the statement that creates the function of a moment, over an archive; both are names in SQL."""
    return _STATE.format(macro=macro, archive=archive)
