"""Findings about the connections of clients: their protocols and login mechanisms."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.values import JsonObject, text

#: The protocol of stream connections, as RabbitMQ lists it.
STREAM: Final = "stream"

NO_AMQP_1: Final = "AMQP 1.0: clients use AMQP 0-9-1, MQTT 5 or STOMP"
NO_STREAM: Final = "the stream protocol: clients read streams over AMQP or STOMP"

#: The protocols that the gateway has, as versions 3 and 4 write them. Direct connections are those of plugins.
_SAME: Final = re.compile(r"(AMQP|Direct) 0-9(-1)?|(Web )?MQTT (3[-.]1([-.][01])?|5([-.]0)?)|(Web )?STOMP 1[-.][012]")
_NOTES: Final = ((re.compile(r"AMQP 1[-.]0"), NO_AMQP_1), (re.compile(STREAM, re.IGNORECASE), NO_STREAM))
_MECHANISMS: Final = frozenset({"", "none", "PLAIN", "AMQPLAIN", "EXTERNAL", "OAUTHBEARER", "SCRAM-SHA-256", "N/A"})


def protocol_findings(connections: list[JsonObject]) -> Iterator[MigrationFinding]:
    """Yield a finding for each protocol in use. A protocol that the gateway does not know is missing."""
    for protocol, count in sorted(Counter(text(each, "protocol") for each in connections).items()):
        if _SAME.fullmatch(protocol):
            yield MigrationFinding("connection", protocol, MoveVerdict.SAME, "", count)
        elif not protocol:
            note = "has not logged in yet: run the check again"
            yield MigrationFinding("connection", "", MoveVerdict.DIFFERS, note, count)
        else:
            note = next((note for pattern, note in _NOTES if pattern.fullmatch(protocol)), "no such protocol")
            yield MigrationFinding("connection", protocol, MoveVerdict.MISSING, note, count)


def mechanism_findings(connections: list[JsonObject]) -> Iterator[MigrationFinding]:
    """Yield a finding for each login mechanism in use that the gateway does not have."""
    for mechanism, count in sorted(Counter(text(each, "auth_mechanism") for each in connections).items()):
        if mechanism not in _MECHANISMS:
            note = "no such mechanism; a plugin can add it (docs/plugins)"
            yield MigrationFinding("login mechanism", mechanism, MoveVerdict.MISSING, note, count)
