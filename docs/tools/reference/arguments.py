"""The arguments of queues and the keys of policies, from their tables, and all other names that begin with ``x-``."""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Final

from docs.tools.reference.table import NOTE, code, table
from gateway.kernel.settings.policy_checks import KEYS, OBSOLETE, OPERATOR_KEYS
from gateway.kernel.settings.queue_arguments import ANY, QUEUE_ARGUMENTS
from gateway.testing import MemoryBroker

_HEAD: Final = f"""\
# Arguments and headers

Every argument of a queue, key of a policy, and name that begins with `x-`. [queues.md](../queues.md) and
[queues-extras.md](../queues-extras.md) have the values and meanings of arguments of queues and keys of policies,
[streams.md](../streams.md) those of streams. {NOTE}
"""


def _types_of_plugins() -> dict[str, str]:
    """Return the first sentence about each exchange type of the built-in plugins whose name begins with ``x-``."""
    types = MemoryBroker().vhost.exchange_types
    return {name: _first_sentence(inspect.getdoc(types[name]) or "") for name in types if name.startswith("x-")}


def _first_sentence(text: str) -> str:
    first = re.split(r"\.\s|\.$", text, maxsplit=1)[0].replace("``", "`")
    return first[:1].lower() + first[1:]


#: Names by the place where a client sets or finds them: the name, and its meaning.
OTHER_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "Exchange types": {
        **_types_of_plugins(),
        "x-delayed-message": "holds each message for the time in its header `x-delay`",
        "x-message-deduplication": "a fanout that drops repeated messages; also an argument of queues and exchanges",
    },
    "Arguments of exchanges": {
        "x-cache-persistence": "`memory` or `disk`: accepted, without effect",
        "x-delayed-type": "the type of exchange that routes a delayed message when it is due",
        "x-recent-history-length": "how many messages `x-recent-history` keeps, 20 by default",
    },
    "Arguments of bindings": {
        "x-jms-selector": "the selector of a binding of `x-jms-topic`",
        "x-match": "`all`, `any`, `all-with-x` or `any-with-x`, for exchanges of type `headers`",
        "x-stream-partition-order": "the position of a partition in its super stream",
    },
    "Arguments of consumers, and of STOMP's SUBSCRIBE": {
        "x-priority": "the priority of a consumer: the highest that has capacity is served first",
        "x-queue-name": "the name of the queue of a STOMP subscription",
        "x-stream-consumer": "the name under which a stream stores the position of a consumer",
        "x-stream-filter": "the filter values that a consumer of a stream wants",
        "x-stream-match-unfiltered": "whether messages without a filter value are delivered, too",
        "x-stream-offset": "where to begin in a stream; also a header of each message from it",
    },
    "Headers that publishers set": {
        "x-deduplication-header": "the value by which repeated messages are found",
        "x-delay": "milliseconds for which the message is held",
        "x-recent-history-no-store": "`true`: routed, but not kept by `x-recent-history`",
        "x-stream-filter-value": "the filter value of the message in a stream; a user property in MQTT",
    },
    "Headers that the broker sets": {
        "x-bound-from": "binding of federation: the way of the binding through brokers",
        "x-correlation-id": "MQTT's correlation data that is no text of at most 255 bytes",
        "x-death": "why, where and how often a message was dead-lettered",
        "x-delivery-count": "number of earlier delivery attempts, in quorum queues",
        "x-first-death-queue": "the queue of the first dead-lettering; also `x-first-death-exchange` and `-reason`",
        "x-last-death-reason": "the latest dead-lettering; also `x-last-death-queue` and `-exchange`",
        "x-mqtt-bridge": "user property of an MQTT bridge: the way of the message, so that it does not come back",
        "x-mqtt-publish-qos": "the QoS with which an MQTT client published, kept by a bridge",
        "x-opt-mqtt-client-id": "the client identifier of an MQTT publisher (plugin `interceptor-client-id`)",
        "x-original-cc": "federation: the header `CC` at the upstream",
        "x-original-exchange": "federation of queues: the exchange at the upstream",
        "x-original-routing-key": "federation of queues: the routing key at the upstream",
        "x-quarantine-exchange": "the exchange of a message in quarantine",
        "x-quarantine-reason": "why a check of bodies put a message into quarantine",
        "x-quarantine-routing-key": "the routing key of a message in quarantine",
        "x-received-from": "federation: the way of the message through brokers",
        "x-replayed-from": "Spark: the stream and position of a message that a job publishes again",
        "x-reply-to-topic": "MQTT's response topic, as a routing key",
        "x-routed-by": "the node that routed the message (plugin `interceptor-routing-node`)",
        "x-shovelled": "the shovel that moved the message, with `dest-add-forward-headers`",
        "x-shovelled-timestamp": "when a shovel moved it, with `dest-add-timestamp-header`",
    },
    "Headers of HTTP": {
        "x-forwarded-proto": "the protocol at a proxy, for cookies of sessions",
        "x-offered-copies": "Spark: the archived copies of a stream that a reader may use instead",
        "x-reason": "why a connection is closed, told to its client and written to the audit record",
        "x-requested-with": "marks requests of a page: a refused login has no challenge",
        "x-required-tag": "member of the OpenAPI document: the tag that an operation requires",
    },
    "Accepted, without effect": {"x-queue-master-locator": "mirroring of RabbitMQ 3; also a policy key"},
}


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## Arguments of queues\n"
    yield "A redeclaration must repeat those that are compared. Others may have any value and are kept.\n"
    yield from table(("Argument", "Queue types", "Policy key", "Compared"), map(_argument, QUEUE_ARGUMENTS))
    yield "\n## Keys of policies\n"
    yield "Operator policies may have the keys that are limits. An invalid value is refused with the text.\n"
    yield from table(("Key", "Argument", "In operator policies", "Text for an invalid value"), map(_key, sorted(KEYS)))
    obsolete = ", ".join(map(code, sorted(OBSOLETE)))
    yield f"\nAccepted, without effect: {obsolete}."
    for title, names in OTHER_NAMES.items():
        yield f"\n## {title}\n"
        yield from table(("Name", "Meaning"), ((code(name), names[name]) for name in sorted(names)))


def _argument(name: str) -> tuple[str, str, str, str]:
    argument = QUEUE_ARGUMENTS[name]
    types = "all" if argument.types == ANY else ", ".join(sorted(argument.types))
    key = name.removeprefix("x-")
    return code(name), types, code(key if key in KEYS else ""), "yes" if argument.is_compared else "no"


def _key(key: str) -> tuple[str, str, str, str]:
    name = f"x-{key}"
    argument = code(name) if name in QUEUE_ARGUMENTS else ""
    return code(key), argument, "yes" if key in OPERATOR_KEYS else "", KEYS[key].fault
