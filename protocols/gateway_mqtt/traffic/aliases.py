"""Topic aliases: numbers in place of topics, valid for one connection (MQTT 5.0, 3.3.2.3.4)."""

from typing import Final

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode


class IncomingAliases:
    """The client's aliases. ``maximum`` is the highest one it may use."""

    __slots__ = ("_maximum", "_topic_by_alias")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._topic_by_alias: dict[int, bytes] = {}

    def resolve(self, alias: int, topic: bytes) -> bytes:
        """Return the topic of a PUBLISH with an alias; a topic in the packet replaces the alias's earlier one.

        :raises MqttError: if the alias is 0, too high, or has no topic yet (MQTT-3.3.2-7, MQTT-3.3.2-9).
        """
        if not 0 < alias <= self._maximum:
            raise MqttError(
                ReasonCode.TOPIC_ALIAS_INVALID, f"topic alias {alias}: the allowed range is 1 to {self._maximum}"
            )
        if topic:
            self._topic_by_alias[alias] = topic
            return topic
        known = self._topic_by_alias.get(alias)
        if known is None:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"topic alias {alias} has no topic yet")
        return known


#: The aliases of a client that may use none; every use is refused.
NO_ALIASES: Final = IncomingAliases(0)


class OutgoingAliases:
    """The server's aliases: the first ``maximum`` topics get one."""

    __slots__ = ("_alias_by_key", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._alias_by_key: dict[str, int] = {}

    def alias(self, routing_key: str) -> tuple[int, bool]:
        """Return the alias of a topic, 0 for none, and whether the client has received it already."""
        alias = self._alias_by_key.get(routing_key)
        if alias is not None:
            return alias, True
        if len(self._alias_by_key) >= self._maximum:
            return 0, False
        self._alias_by_key[routing_key] = alias = len(self._alias_by_key) + 1
        return alias, False

    def forget(self, routing_key: str) -> None:
        """Withdraw the newest alias, because the packet that would announce it is not sent."""
        del self._alias_by_key[routing_key]
