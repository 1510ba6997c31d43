"""A mapping of topics to routing keys that begin with a prefix, and the parts of keys that permissions insert."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gateway_mqtt.translation.topics import TopicMapping

#: The first character of topics that are not prefixed: wildcards do not match them (MQTT-4.7.2-1).
_OF_THE_BROKER: Final = "$"

_NO_WILDCARDS: Final = str.maketrans({"*": "%2A", "#": "%23"})


@dataclass(frozen=True, slots=True)
class PrefixedTopics:
    """Maps topics by ``inner``, below the words of ``prefix`` (``plant.hall``). The clients do not see the prefix.

    A message whose key has another beginning is shown with its whole key as topic.
    """

    inner: TopicMapping
    prefix: str

    @property
    def is_lossy(self) -> bool:
        """Whether the mapping below the prefix is RabbitMQ's."""
        return self.inner.is_lossy

    def routing_key(self, topic: str) -> str:
        """Return the key of a topic."""
        return self._below(self.inner.routing_key(topic))

    def topic(self, routing_key: str) -> str:
        """Return the topic of a key."""
        return self.inner.topic(self._without_prefix(routing_key))

    def binding_key(self, filter: str) -> str:
        """Return the binding key of a filter."""
        return self._below(self.inner.binding_key(filter))

    def filter(self, binding_key: str) -> str:
        """Return the filter of a binding key."""
        return self.inner.filter(self._without_prefix(binding_key))

    def _below(self, key: str) -> str:
        return key if key.startswith(_OF_THE_BROKER) else f"{self.prefix}.{key}"

    def _without_prefix(self, key: str) -> str:
        return "" if key == self.prefix else key.removeprefix(f"{self.prefix}.")


def topic_variables(mapping: TopicMapping, client_id: str, user: str) -> Mapping[str, str]:
    """Return the values of ``{client_id}`` and ``{username}`` in topic permissions, in the form of routing keys.

    Wildcards in them are escaped; otherwise a client named ``*`` could read the topics of all others.
    """
    inner = mapping.inner if isinstance(mapping, PrefixedTopics) else mapping
    names = {"client_id": client_id, "username": user}
    return {variable: inner.routing_key(name).translate(_NO_WILDCARDS) for variable, name in names.items()}
