"""check_interceptor accepts sound interceptors, and names the promise that a faulty one breaks."""

from time import thread_time
from typing import Any

import pytest

from gateway.api import Decision, Diversion, Interceptor, Message, Origin, Refusal
from gateway.testing import check_interceptor, plain_message


class Changing(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Decision:
        if not message.body:
            return Refusal("the body is empty")
        if len(message.body) > 1000:
            return Diversion("", "large")
        return message.edited({"seen": origin.user}, without=("text",), body=message.body[::-1], routing_key="key")

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        return message.edited({"queue": queue})


class Wrong(Interceptor):
    """Returns what a test gives it."""

    def __init__(self, decision: Any = None, delivered: Any = None) -> None:
        self._decision = decision
        self._delivered = delivered

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message if self._decision is None else self._decision  # type: ignore[no-any-return]

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        return message if self._delivered is None else self._delivered  # type: ignore[no-any-return]


class Undeclared(Interceptor):
    on_error = "drop"  # type: ignore[assignment]


class Declaring(Interceptor):
    """Declares ``exchanges``, and fails for a message of another one."""

    def __init__(self, exchanges: Any) -> None:
        self.exchanges = exchanges

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        assert message.exchange in self.exchanges
        return message


class Sized(Interceptor):
    """Decides by the body, although it declares that it does not."""

    decides_by_header = True

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message.edited({"size": len(message.body)})


class Shouting(Interceptor):
    """Changes the body, although it declares that it does not."""

    decides_by_header = True

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message.edited(body=message.body + b"!")


class Keyed(Interceptor):
    """Declares ``routing_keys``, and fails for a message with another one."""

    def __init__(self, routing_keys: Any) -> None:
        self.routing_keys = routing_keys

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        assert message.routing_key in self.routing_keys
        return message


class Raising(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message.edited({"size": message.body[0]})


class RaisingLater(Interceptor):
    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        raise KeyError(queue)


class Modifying(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Decision:
        message.body += b"!"
        return message


class Slow(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Decision:
        ends_s = thread_time() + 0.006
        while thread_time() < ends_s:
            pass
        return message


def test_an_interceptor_that_does_nothing_fulfils_the_contract() -> None:
    check_interceptor(Wrong())
    assert Interceptor.on_error == "refuse"


def test_an_interceptor_that_uses_every_decision_fulfils_the_contract() -> None:
    message = plain_message(body=b"abc")
    check_interceptor(Changing(), [message])
    assert message.body == b"abc"


def test_an_interceptor_gets_messages_of_the_exchanges_that_it_declares() -> None:
    check_interceptor(Declaring({"orders", "payments"}))


def test_an_interceptor_gets_messages_with_the_routing_keys_that_it_declares() -> None:
    check_interceptor(Keyed({"a.b", "c"}))


@pytest.mark.parametrize(
    ("interceptor", "complaint"),
    [
        (Wrong(decision=True), "on_publish.. returned True"),
        (Wrong(decision=Refusal("")), "a reason that is empty"),
        (Wrong(decision=Refusal("r" * 201)), "longer than 200 bytes"),
        (Wrong(decision=Diversion("x", 1)), "whose names are no text"),  # type: ignore[arg-type]
        (Wrong(decision=plain_message().with_address("other", "", plain_message().header)), "needs a Diversion"),
        (Wrong(delivered=b"body"), "on_deliver.. returned b'body'"),
        (Undeclared(), "on_error must be one of refuse, pass, not 'drop'"),
        (Declaring("orders"), "exchanges must be a set of names, not 'orders'"),
        (Declaring(3), "exchanges must be a set of names, not 3"),
        (Declaring({3}), "exchanges has 3, which is not a name"),
        (Keyed("orders"), "routing_keys must be a set of names, not 'orders'"),
        (Sized(), "decides_by_header is declared, but on_publish.. decides about .* by more than its header"),
        (Shouting(), "decides_by_header is declared, but on_publish.. decides about .* or changes more"),
        (Raising(), "on_publish.. raised IndexError"),
        (RaisingLater(), "on_deliver.. raised KeyError"),
        (Modifying(), "in place"),
        (Slow(), "takes longer than 5 ms"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_promise_is_named(interceptor: Interceptor, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_interceptor(interceptor)
