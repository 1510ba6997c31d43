"""Topic names and topic filters (4.7, 4.8.2), and their two mappings to routing keys and binding keys."""

import re
from typing import Final, NamedTuple, Protocol

from gateway_mqtt.codec.errors import MqttError, malformed, shown
from gateway_mqtt.codec.reasons import ReasonCode

SHARE: Final = "$share/"
"""The prefix of a shared subscription's filter."""

_NO_SHARE_NAME: Final = re.compile(r"[+#]")


class SharedSubscription(NamedTuple):
    """A shared subscription: its members share the messages that match the filter."""

    group: str
    filter: str


def check_topic(text: str) -> None:
    """Refuse an invalid topic name: empty (MQTT-4.7.3-1), with U+0000 (MQTT-4.7.3-2) or wildcards (MQTT-4.7.0-1)."""
    if not text or "+" in text or "#" in text or "\0" in text:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"'{shown(text)}' is not a valid topic name")


def check_filter(text: str) -> None:
    """Refuse an invalid topic filter, given without ``$share`` and group.

    ``#`` must be a whole level and the last one (MQTT-4.7.1-1), ``+`` a whole level (MQTT-4.7.1-2). An empty filter and
    U+0000 are invalid (MQTT-4.7.3-1, 4.7.3-2).
    """
    if not text or "\0" in text:
        raise _invalid(text)
    if "+" not in text and "#" not in text:
        return
    levels = text.split("/")
    if "#" in levels[:-1] or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise _invalid(text)


def require_filter(text: str) -> None:
    """Refuse a packet with an empty filter, alone or after ``$share`` and a group (MQTT-4.7.3-1, 4.8.2-2).

    :raises MqttError: if so; the connection ends.
    """
    group, slash, filter = text.removeprefix(SHARE).partition("/")
    if not text or (text.startswith(SHARE) and group and slash and not filter):
        raise malformed(f"'{shown(text)}' has an empty topic filter")


def parse_filter(text: str) -> tuple[SharedSubscription | None, str]:
    """Return the shared subscription of a filter, if any, and the filter without it; both are validated.

    The group must not be empty (MQTT-4.8.2-1) or contain wildcards, and a filter must follow it (MQTT-4.8.2-2).
    """
    if not text.startswith(SHARE):
        check_filter(text)
        return None, text
    group, slash, filter = text[len(SHARE) :].partition("/")
    if not (group and slash) or _NO_SHARE_NAME.search(group):
        raise _invalid(text)
    check_filter(filter)
    return SharedSubscription(group, filter), filter


def _invalid(text: str) -> MqttError:
    return MqttError(ReasonCode.TOPIC_FILTER_INVALID, f"'{shown(text)}' is not a valid topic filter")


# ---- Limits of this server ------------------------------------------------------------------------------------------

#: The longest routing key or binding key in bytes, including escapes: the store's records hold no longer one.
LONGEST_KEY: Final = 65_535

#: Mosquitto allows 200 separators; every topic that it accepts is accepted here.
DEFAULT_MAX_LEVELS: Final = 201


class TopicBounds(NamedTuple):
    """Limits of this server for topics and filters.

    ``max_levels`` limits their levels: each level of a filter or of a retained topic is a node in an index.
    """

    max_levels: int = DEFAULT_MAX_LEVELS

    def objection(self, text: str, key: str) -> str:
        """Return why a topic or filter with this routing or binding key is refused; empty if it is accepted."""
        levels = text.count("/") + 1
        if levels > self.max_levels:
            return f"'{shown(text)}' has {levels} levels; the limit is {self.max_levels}"
        size = len(key.encode())
        if size > LONGEST_KEY:
            return f"'{shown(text)}' needs a key of {size} bytes; the limit is {LONGEST_KEY}"
        return ""


# ---- Mapping to AMQP keys and back ----------------------------------------------------------------------------------


class TopicMapping(Protocol):
    """A mapping of topics to routing keys. Every method accepts any text and raises nothing.

    ``topic`` always returns a valid topic name, also for a key of another protocol. ``prefix`` are the words with which
    all keys begin, empty for none.
    """

    @property
    def is_lossy(self) -> bool:
        """Whether it is RabbitMQ's mapping."""
        ...

    @property
    def prefix(self) -> str:
        """The words before each key."""
        ...

    def routing_key(self, topic: str) -> str:
        """Return the routing key of a topic."""
        ...

    def topic(self, routing_key: str) -> str:
        """Return the topic of a routing key."""
        ...

    def binding_key(self, filter: str) -> str:
        """Return the binding key of a filter."""
        ...

    def filter(self, binding_key: str) -> str:
        """Return the filter of a binding key."""
        ...


#: The topic of an empty routing key, which only other protocols can write: a topic must not be empty (MQTT-4.7.3-1).
_EMPTY_TOPIC: Final = "/"

#: AMQP's separator and wildcards, and the escape character itself.
_ESCAPES: Final = str.maketrans({"%": "%25", ".": "%2E", "*": "%2A", "/": "."})
_FILTER_ESCAPES: Final = _ESCAPES | str.maketrans({"+": "*"})

#: The inverse; the last three occur only in keys from AMQP or STOMP.
_UNESCAPED: Final = {"%25": "%", "%2E": ".", "%2A": "*", ".": "/", "+": "%2B", "#": "%23", "\0": "%00"}
_ESCAPED: Final = re.compile(r"%25|%2E|%2A|[.+#\0]")

_FILTER_WILDCARDS: Final = {"*": "+", "#": "#"}


class Reversible:
    """A reversible mapping: characters with a meaning in AMQP are escaped in routing keys.

    Topics without such characters map as with :class:`Lossy`.
    """

    is_lossy: Final = False
    prefix: Final = ""

    def routing_key(self, topic: str) -> str:
        """Return the key of a topic."""
        if "." in topic or "%" in topic or "*" in topic:
            return topic.translate(_ESCAPES)
        return topic.replace("/", ".")

    def topic(self, routing_key: str) -> str:
        """Return the topic of a key; escapes that ``routing_key`` never writes stay unchanged."""
        if "%" in routing_key or "+" in routing_key or "#" in routing_key or "\0" in routing_key:
            return _ESCAPED.sub(_unescape, routing_key)
        return routing_key.replace(".", "/") or _EMPTY_TOPIC

    def binding_key(self, filter: str) -> str:
        """Return the binding key of a filter."""
        return filter.translate(_FILTER_ESCAPES)

    def filter(self, binding_key: str) -> str:
        """Return the filter of a binding key."""
        return "/".join(_FILTER_WILDCARDS.get(word) or self._level(word) for word in binding_key.split("."))

    def _level(self, word: str) -> str:
        return _ESCAPED.sub(_unescape, word)


def _unescape(found: re.Match[str]) -> str:
    return _UNESCAPED[found[0]]


_TO_AMQP: Final = str.maketrans("/+", ".*")
_FROM_AMQP: Final = str.maketrans(".*", "/+")
_FOREIGN: Final = str.maketrans({".": "/", "+": "%2B", "#": "%23", "\0": "%00"})


class Lossy:
    """RabbitMQ's mapping: nothing is escaped, so a dot in a topic becomes a level separator on the way back.

    RabbitMQ also turns ``*`` into ``+`` in topics; here a star stays, because topic names cannot contain ``+``
    (MQTT-3.3.2-2).
    """

    is_lossy: Final = True
    prefix: Final = ""

    def routing_key(self, topic: str) -> str:
        """Return the key of a topic."""
        return topic.replace("/", ".")

    def topic(self, routing_key: str) -> str:
        """Return the topic of a key."""
        return routing_key.translate(_FOREIGN) or _EMPTY_TOPIC

    def binding_key(self, filter: str) -> str:
        """Return the binding key of a filter."""
        return filter.translate(_TO_AMQP)

    def filter(self, binding_key: str) -> str:
        """Return the filter of a binding key."""
        return binding_key.translate(_FROM_AMQP)


REVERSIBLE: Final[TopicMapping] = Reversible()
LOSSY: Final[TopicMapping] = Lossy()


# ---- Permissions of topics ------------------------------------------------------------------------------------------

#: Reserved first levels of topics, to which clients cannot publish.
_OF_THE_BROKER: Final = ("$SYS", "$share")


def is_reserved(topic: str, routing_key: str) -> bool:
    """Whether no client may publish to a topic. With RabbitMQ's mapping ``$SYS.a`` becomes ``$SYS/a``."""
    return topic.partition("/")[0] in _OF_THE_BROKER or routing_key.partition(".")[0] in _OF_THE_BROKER
