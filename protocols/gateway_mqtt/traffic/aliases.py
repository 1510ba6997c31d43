"""Short numbers in place of topics, for the length of one connection (MQTT 5.0, 3.3.2.3.4)."""

from gateway_mqtt.codec.errors import MqttError
from gateway_mqtt.codec.reasons import ReasonCode


class IncomingAliases:
    """What the client's numbers stand for. ``maximum`` is how many it may use."""

    __slots__ = ("_maximum", "_topic_by_alias")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._topic_by_alias: dict[int, bytes] = {}

    def resolve(self, alias: int, topic: bytes) -> bytes:
        """Return the topic of a publish with an alias; a topic that comes with it replaces the one before.

        :raises MqttError: when the alias is 0, too high, or stands for nothing yet (MQTT-3.3.2-7, MQTT-3.3.2-9).
        """
        if not 0 < alias <= self._maximum:
            raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, f"topic alias {alias}: allowed are 1 to {self._maximum}")
        if topic:
            self._topic_by_alias[alias] = topic
            return topic
        known = self._topic_by_alias.get(alias)
        if known is None:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"topic alias {alias} was not given a topic before")
        return known


class OutgoingAliases:
    """The numbers this side uses: first come, first served, ``maximum`` of them, for topics worth a number."""

    __slots__ = ("_alias_by_key", "_maximum")

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._alias_by_key: dict[str, int] = {}

    def alias(self, routing_key: str) -> tuple[int, bool]:
        """Return the alias of a topic and whether the client knows it already; 0 for none."""
        alias = self._alias_by_key.get(routing_key)
        if alias is not None:
            return alias, True
        if len(self._alias_by_key) >= self._maximum:
            return 0, False
        self._alias_by_key[routing_key] = alias = len(self._alias_by_key) + 1
        return alias, False

    def forget(self, routing_key: str) -> None:
        """Take back the alias that was given last: the packet that was to tell the client of it is not sent."""
        del self._alias_by_key[routing_key]
