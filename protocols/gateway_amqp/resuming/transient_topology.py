"""The exchanges, queues and bindings that a connection declared and that end with the leader.

Those that are durable are in the log of the cluster. The others are declared again on the next leader, in the order in
which they came; what was in the queues is lost.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias, cast

from pamqp import commands
from pamqp.base import Frame

from gateway_amqp.methods import table_of
from gateway_amqp.tables import encode_table

#: The most that is remembered of one connection. A client that declares more is not resumed.
MOST: Final = 4096

Key: TypeAlias = tuple[str, ...] | tuple[str, str, str, str, bytes]
Binding: TypeAlias = commands.Queue.Bind | commands.Queue.Unbind | commands.Exchange.Bind | commands.Exchange.Unbind


class TransientTopology:
    """Owns the declarations of one connection, on all of its channels."""

    def __init__(self) -> None:
        self._declared: dict[Key, Frame] = {}

    @property
    def is_too_large(self) -> bool:
        """Whether there is more than is remembered."""
        return len(self._declared) > MOST

    def requests(self) -> list[Frame]:
        """Return the methods that declare everything again."""
        return list(self._declared.values())

    def has_queue(self, name: str) -> bool:
        """Whether a queue is among them."""
        return ("queue", name) in self._declared

    def exchange_declared(self, method: commands.Exchange.Declare) -> None:
        """Note a declaration that succeeded."""
        if not method.passive and not method.durable and not method.exchange.startswith("amq."):
            self._note(("exchange", method.exchange), method)

    def queue_declared(self, method: commands.Queue.Declare, name: str) -> None:
        """Note a declaration that succeeded; the broker may have chosen the name."""
        if not method.passive and (method.exclusive or not method.durable):
            method.queue = name
            self._note(("queue", name), method)

    def bound(self, method: Binding, destination: str, routing_key: str) -> None:
        """Note a binding, if one of its ends is among them."""
        kind = "queue" if isinstance(method, commands.Queue.Bind) else "exchange"
        if (kind, destination) not in self._declared and ("exchange", _source(method)) not in self._declared:
            return
        method.routing_key = routing_key
        if isinstance(method, commands.Queue.Bind):
            method.queue = destination
        self._note(_binding(kind, method, destination, routing_key), method)

    def unbound(self, method: Binding, destination: str, routing_key: str) -> None:
        """Forget a binding."""
        kind = "queue" if isinstance(method, commands.Queue.Unbind) else "exchange"
        self._declared.pop(_binding(kind, method, destination, routing_key), None)

    def queue_gone(self, name: str) -> None:
        """Forget a queue and its bindings."""
        if self._declared.pop(("queue", name), None) is not None:
            self._forget_bindings("queue", name)

    def exchange_gone(self, name: str) -> None:
        """Forget an exchange and its bindings."""
        if self._declared.pop(("exchange", name), None) is not None:
            self._forget_bindings("exchange", name)

    def consumer_gone(self, queue: str) -> None:
        """Forget a queue whose last consumer of this connection left, if it ends with its consumers."""
        declared = self._declared.get(("queue", queue))
        if isinstance(declared, commands.Queue.Declare) and declared.auto_delete:
            self.queue_gone(queue)

    def _note(self, key: Key, method: Frame) -> None:
        if hasattr(method, "nowait"):
            method.nowait = False
        self._declared[key] = method

    def _forget_bindings(self, kind: str, name: str) -> None:
        for key in [
            key for key in self._bindings() if key[1:3] == (kind, name) or (kind, key[3]) == ("exchange", name)
        ]:
            del self._declared[key]

    def _bindings(self) -> Iterator[tuple[str, ...]]:
        return (cast(tuple[str, ...], key) for key in self._declared if key[0] == "binding")


def queue_of(method: Frame) -> str:
    """Return the queue that a request for the next leader needs; empty if it needs none."""
    return str(method.queue) if isinstance(method, commands.Queue.Declare | commands.Queue.Bind) else ""


def _source(method: Binding) -> str:
    if isinstance(method, commands.Queue.Bind | commands.Queue.Unbind):
        return method.exchange
    return method.source


def _binding(kind: str, method: Binding, destination: str, routing_key: str) -> Key:
    arguments = encode_table(table_of(method.arguments))
    return ("binding", kind, destination, _source(method), routing_key, arguments)  # type: ignore[return-value]
