"""Mosquitto's ACL files: ``user``, ``topic`` and ``pattern`` lines."""

from dataclasses import dataclass, field
from typing import Final

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.rules import MqttClient, replaced
from gateway_auth.mosquitto.topics import Levels, covers, levels_of, overlaps

_ACCESS: Final = ("read", "write", "readwrite", "deny")


@dataclass(frozen=True, slots=True)
class AclRule:
    """One line; ``access`` is ``read``, ``write``, ``readwrite`` or ``deny``."""

    access: str
    topic: Levels


@dataclass(slots=True)
class AclFile:
    """The rules by user, those of anonymous clients under the empty name, and the patterns of all clients."""

    by_user: dict[str, list[AclRule]] = field(default_factory=dict)
    patterns: list[AclRule] = field(default_factory=list)

    def may_publish(self, client: MqttClient, asked: Levels) -> bool:
        """Whether a rule permits to write the topic, and none denies it."""
        return self._permits(client, asked, "write")

    def may_subscribe(self, client: MqttClient, asked: Levels) -> bool:
        """Whether one rule permits to read all topics of the filter, and none denies one of them."""
        return self._permits(client, asked, "read")

    def _permits(self, client: MqttClient, asked: Levels, access: str) -> bool:
        rules = list(self.by_user.get(client.user, ()))
        for pattern in self.patterns:
            topic = replaced(pattern.topic, client)
            if topic is not None:
                rules.append(AclRule(pattern.access, topic))
        if any(rule.access == "deny" and overlaps(rule.topic, asked) for rule in rules):
            return False
        return any(rule.access in (access, "readwrite") and covers(rule.topic, asked) for rule in rules)


def parse_acl_file(text: str) -> AclFile:
    """Parse an ACL file. :raises ConfigurationError: with the line, if one is invalid."""
    found, user = AclFile(), ""
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.strip().partition(" ")
        rest = rest.strip()
        if not word or word.startswith("#"):
            continue
        try:
            match word:
                case "user" if rest:
                    user = rest
                case "topic" if rest:
                    found.by_user.setdefault(user, []).append(_rule(rest))
                case "pattern" if rest:
                    found.patterns.append(_rule(rest))
                case _:
                    raise ConfigurationError(f"expected user, topic or pattern and a value, not {line.strip()!r}")
        except ConfigurationError as error:
            raise ConfigurationError(f"line {number}: {error}") from None
    return found


def _rule(text: str) -> AclRule:
    first, _, rest = text.partition(" ")
    if first in _ACCESS and rest.strip():
        return AclRule(first, levels_of(rest.strip()))
    return AclRule("readwrite", levels_of(text))
