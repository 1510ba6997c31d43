"""The interface of Mosquitto's rules about clients and topics."""

from dataclasses import dataclass
from typing import Protocol

from gateway_auth.mosquitto.topics import Levels


@dataclass(frozen=True, slots=True)
class MqttClient:
    """A client in rules; ``user`` is empty for an anonymous one."""

    user: str
    client_id: str


class TopicRules(Protocol):
    """Decides on topics; ``asked`` may be a filter when a client subscribes."""

    def may_publish(self, client: MqttClient, asked: Levels) -> bool:
        """Whether a client may publish to a topic."""
        ...

    def may_subscribe(self, client: MqttClient, asked: Levels) -> bool:
        """Whether a client may receive all topics that match a filter."""
        ...


class OpenTopics:
    """The rules without a file: everything is permitted."""

    def may_publish(self, client: MqttClient, asked: Levels) -> bool:
        """Permit it."""
        return True

    def may_subscribe(self, client: MqttClient, asked: Levels) -> bool:
        """Permit it."""
        return True


def replaced(levels: Levels, client: MqttClient) -> Levels | None:
    """Return a pattern with ``%u`` and ``%c`` replaced; ``None`` if a value is missing or has a wildcard or a slash."""
    found = []
    for level in levels:
        for variable, value in (("%u", client.user), ("%c", client.client_id)):
            if variable in level:
                if not value or any(character in value for character in "+#/"):
                    return None
                level = level.replace(variable, value)
        found.append(level)
    return tuple(found)
