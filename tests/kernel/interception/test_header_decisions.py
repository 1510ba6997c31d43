"""Interceptors that decide by the header: their answers are reused for messages that repeat it, and for no others."""

from collections.abc import Callable, Mapping

import pytest

from gateway.api import AccessRefused, Decision, Diversion, Interceptor, Message, Origin, Refusal, RefusalCause, Value
from gateway.testing import MemoryBroker, plain_message

ONE = Origin("one -> broker", 1, "guest", "amqp091")
OTHER = Origin("other -> broker", 1, "guest", "amqp091")


class ByHeader(Interceptor):
    """Answers by a function, and counts its calls."""

    on_error = "pass"
    decides_by_header = True

    def __init__(self, answer: Callable[[Message], Decision] = lambda message: message) -> None:
        self.calls = 0
        self._answer = answer

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        self.calls += 1
        return self._answer(message)


class Asked(ByHeader):
    """Declares nothing."""

    decides_by_header = False


def stamped(message: Message) -> Message:
    return message.edited({"stamp": message.routing_key})


def failing(message: Message) -> Message:
    raise ValueError("no price")


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def use(broker: MemoryBroker, *interceptors: Interceptor) -> None:
    broker.vhost.interception.apply(interceptors)


def like(first: Message, body: bytes, key: str = "k", exchange: str = "amq.topic") -> Message:
    """Return a message with the header of another one, as adapters do for properties that repeat."""
    return Message(exchange, key, first.header, body)


def publish(broker: MemoryBroker, *messages: Message, origin: Origin = ONE) -> list[Message]:
    return [broker.vhost.interception.published(message, origin) for message in messages]


def test_a_header_that_comes_again_and_again_is_decided_about_twice(broker: MemoryBroker) -> None:
    interceptor, first = ByHeader(), plain_message(headers={"n": 1})
    use(broker, interceptor)
    messages = [like(first, b"%d" % number) for number in range(10)]
    assert publish(broker, *messages) == messages
    assert interceptor.calls == 2


def test_an_edited_header_is_given_to_each_message_with_its_own_body(broker: MemoryBroker) -> None:
    interceptor, first = ByHeader(stamped), plain_message(headers={"n": 1})
    use(broker, interceptor, ByHeader(lambda message: message.edited({"m": 2}, without=["n"])))
    published = publish(broker, *[like(first, b"%d" % number) for number in range(5)])
    assert [each.body for each in published] == [b"0", b"1", b"2", b"3", b"4"]
    expected: Mapping[str, Value] = {"stamp": "k", "m": 2}
    assert [dict(each.headers) for each in published] == [expected] * 5
    assert len({id(each) for each in published}) == 5
    assert interceptor.calls == 2


def test_another_address_or_origin_is_decided_about_anew(broker: MemoryBroker) -> None:
    interceptor, first = ByHeader(stamped), plain_message(headers={"n": 1})
    use(broker, interceptor)
    publish(broker, *[like(first, b"") for _ in range(4)])
    interceptor.calls = 0
    [other_key] = publish(broker, like(first, b"", key="z"))
    assert other_key.headers["stamp"] == "z"
    publish(broker, like(first, b"", exchange="amq.direct"))
    publish(broker, like(first, b""), origin=OTHER)
    assert interceptor.calls == 3


def test_headers_that_all_differ_are_not_kept(broker: MemoryBroker) -> None:
    interceptor = ByHeader()
    use(broker, interceptor)
    publish(broker, *[plain_message(headers={"n": number}) for number in range(10)])
    assert interceptor.calls == 10


def test_if_one_interceptor_declares_nothing_all_are_called(broker: MemoryBroker) -> None:
    interceptors, first = [ByHeader(stamped), Asked()], plain_message(headers={"n": 1})
    use(broker, *interceptors)
    publish(broker, *[like(first, b"") for _ in range(5)])
    assert [each.calls for each in interceptors] == [5, 5]


@pytest.mark.parametrize(
    "answer", [failing, lambda message: None, lambda message: Diversion("", "q")], ids=["raises", "wrong", "diverts"]
)
def test_faults_and_diversions_are_not_kept(broker: MemoryBroker, answer: Callable[[Message], Decision]) -> None:
    interceptor, first = ByHeader(answer), plain_message(headers={"n": 1})
    use(broker, interceptor)
    publish(broker, *[like(first, b"") for _ in range(5)])
    assert interceptor.calls == 5


def test_a_refusal_is_asked_for_each_time(broker: MemoryBroker) -> None:
    interceptor, first = ByHeader(lambda message: Refusal("no", RefusalCause.ACCESS)), plain_message()
    use(broker, interceptor)
    for _ in range(3):
        with pytest.raises(AccessRefused):
            publish(broker, like(first, b""))
    assert interceptor.calls == 3


def test_a_changed_body_is_not_kept_even_if_the_interceptor_breaks_its_promise(broker: MemoryBroker) -> None:
    interceptor, first = ByHeader(lambda message: message.edited(body=message.body + b"!")), plain_message()
    use(broker, interceptor)
    published = publish(broker, *[like(first, b"%d" % number) for number in range(4)])
    assert [each.body for each in published] == [b"0!", b"1!", b"2!", b"3!"]


def test_new_interceptors_decide_anew(broker: MemoryBroker) -> None:
    first = plain_message(headers={"n": 1})
    for stamp in ("v1", "v2", "v1"):
        use(broker, ByHeader(lambda message, stamp=stamp: message.edited({"stamp": stamp})))  # type: ignore[misc]
        published = publish(broker, *[like(first, b"") for _ in range(4)])
        assert {each.headers["stamp"] for each in published} == {stamp}


def test_kept_decisions_are_bounded(broker: MemoryBroker) -> None:
    interceptor = ByHeader()
    use(broker, interceptor)
    for number in range(1000):
        first = plain_message(headers={"n": number})
        publish(broker, *[like(first, b"") for _ in range(3)])
    chain = broker.vhost.interception.publishing
    assert chain is not None
    assert len(chain._decisions._known) <= 256  # type: ignore[attr-defined]
    assert interceptor.calls == 2000
