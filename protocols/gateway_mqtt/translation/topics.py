"""Topic names and topic filters (4.7, 4.8.2), and the two ways they become routing keys and binding keys."""

import re
from typing import Final, NamedTuple, Protocol

from gateway_mqtt.codec.errors import MqttError, malformed, shown
from gateway_mqtt.codec.reasons import ReasonCode

SHARE: Final = "$share/"
"""How the filter of a shared subscription begins."""

_NO_SHARE_NAME: Final = re.compile(r"[+#]")


class SharedSubscription(NamedTuple):
    """A shared subscription: its members share what the filter matches."""

    group: str
    filter: str


def check_topic(text: str) -> None:
    """Refuse what is no topic name: nothing at all (MQTT-4.7.3-1), U+0000 (MQTT-4.7.3-2), wildcards (MQTT-4.7.0-1)."""
    if not text or "+" in text or "#" in text or "\0" in text:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"'{shown(text)}' is no topic name")


def check_filter(text: str) -> None:
    """Refuse what is no topic filter, with ``$share`` and a group taken off.

    ``#`` is a whole level and the last (MQTT-4.7.1-1), ``+`` a whole level (MQTT-4.7.1-2); nothing at all and U+0000
    are no filters (MQTT-4.7.3-1, 4.7.3-2).
    """
    if not text or "\0" in text:
        raise _invalid(text)
    if "+" not in text and "#" not in text:
        return
    levels = text.split("/")
    if "#" in levels[:-1] or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise _invalid(text)


def require_filter(text: str) -> None:
    """Refuse a packet with no filter where one has to be, after ``$share`` and a group too (MQTT-4.7.3-1, 4.8.2-2).

    :raises MqttError: then; the connection ends.
    """
    group, slash, filter = text.removeprefix(SHARE).partition("/")
    if not text or (text.startswith(SHARE) and group and slash and not filter):
        raise malformed(f"'{shown(text)}' names no topic filter")


def parse_filter(text: str) -> tuple[SharedSubscription | None, str]:
    """Return the shared subscription that a filter names, if any, and the filter without it; both are checked.

    The group is not empty (MQTT-4.8.2-1), has no wildcard, and a filter follows it (MQTT-4.8.2-2).
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
    return MqttError(ReasonCode.TOPIC_FILTER_INVALID, f"'{shown(text)}' is no topic filter")


# ---- What this server accepts --------------------------------------------------------------------------------------

#: The longest routing key or binding key in bytes: a record of the store holds no longer one, and escapes count.
LONGEST_KEY: Final = 65_535

#: Mosquitto refuses more than 200 separators, so that what it accepts is accepted here.
DEFAULT_MAX_LEVELS: Final = 201


class TopicBounds(NamedTuple):
    """What topics and filters this server accepts, of those that the specification allows.

    ``max_levels`` bounds their levels: each level of a filter or of a retained topic takes a node in an index.
    """

    max_levels: int = DEFAULT_MAX_LEVELS

    def objection(self, text: str, key: str) -> str:
        """Return why a topic or filter with this routing or binding key is not accepted; empty if it is."""
        levels = text.count("/") + 1
        if levels > self.max_levels:
            return f"'{shown(text)}' has {levels} levels, allowed are {self.max_levels}"
        size = len(key.encode())
        if size > LONGEST_KEY:
            return f"'{shown(text)}' needs a key of {size} bytes, allowed are {LONGEST_KEY}"
        return ""


# ---- To AMQP's keys and back ----------------------------------------------------------------------------------------


class TopicMapping(Protocol):
    """How levels become words. Every method takes any text and raises nothing.

    What ``topic`` returns may always be sent as a topic name, whoever wrote the key.
    """

    def routing_key(self, topic: str) -> str:
        """Return the key a message of this topic is published with."""
        ...

    def topic(self, routing_key: str) -> str:
        """Return the topic under which a message of this key is delivered."""
        ...

    def binding_key(self, filter: str) -> str:
        """Return the key that binds a queue to what the filter matches."""
        ...

    def filter(self, binding_key: str) -> str:
        """Return the filter that a binding stands for."""
        ...


#: A key that no client of MQTT wrote may be empty, which a topic must not be (MQTT-4.7.3-1).
_EMPTY_TOPIC: Final = "/"

#: What AMQP takes for a separator or a wildcard, and the sign of escaping itself.
_ESCAPES: Final = str.maketrans({"%": "%25", ".": "%2E", "*": "%2A", "/": "."})
_FILTER_ESCAPES: Final = _ESCAPES | str.maketrans({"+": "*"})

#: Back again; the last three stand in a key of AMQP or STOMP, and never in a topic.
_UNESCAPED: Final = {"%25": "%", "%2E": ".", "%2A": "*", ".": "/", "+": "%2B", "#": "%23", "\0": "%00"}
_ESCAPED: Final = re.compile(r"%25|%2E|%2A|[.+#\0]")

_FILTER_WILDCARDS: Final = {"*": "+", "#": "#"}


class Reversible:
    """Every topic comes back as it was: what means something to AMQP is escaped on the way to a key.

    Topics and keys of letters, digits and separators, which nearly all are, look as with :class:`Lossy`.
    """

    def routing_key(self, topic: str) -> str:
        """Return the key of a topic."""
        if "." in topic or "%" in topic or "*" in topic:
            return topic.translate(_ESCAPES)
        return topic.replace("/", ".")

    def topic(self, routing_key: str) -> str:
        """Return the topic of a key; an escape that ``routing_key`` never writes stays as it is."""
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
    """RabbitMQ's mapping: nothing is escaped, so a dot in a topic comes back as a level.

    RabbitMQ also makes ``+`` of ``*`` in topics; here a star stays one, since no topic name may hold the other
    (MQTT-3.3.2-2).
    """

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
