"""A failing plugin affects only the operation that called it: a message is unroutable, all else continues."""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from gateway.access import Access, Credentials, Permissions, Principal
from gateway.api import Arguments, Binding, Destination, Message, hookimpl
from gateway.kernel.errors import CommandInvalid, NotAllowed, PreconditionFailed
from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.verdict import Verdict
from gateway.plugins.registry import FoundPlugin, PluginRegistry, find_plugins
from gateway.testing import MemoryBroker, Recipient
from gateway_memory import MemoryStore

NAME = "fickle"
TYPE = "x-fickle"


class ScriptedExchange:
    """An exchange type whose methods tests replace; by default it is a fanout."""

    answer: "Callable[[ScriptedExchange], object]"
    fails_to: set[str]

    def __init__(self, arguments: Arguments) -> None:
        if "declare" in self.fails_to:
            raise KeyError("x-missing")
        self.bound: list[Binding] = []

    def bind(self, binding: Binding) -> None:
        if "bind" in self.fails_to:
            raise ZeroDivisionError("bound to fail")
        self.bound.append(binding)

    def unbind(self, binding: Binding) -> None:
        if "unbind" in self.fails_to:
            raise ZeroDivisionError("bound to fail")
        self.bound.remove(binding)

    def route(self, message: Message) -> list[Destination]:
        return type(self).answer(self)  # type: ignore[return-value]


def everything(type: ScriptedExchange) -> object:
    return [binding.destination for binding in type.bound]


def failing(type: ScriptedExchange) -> object:
    raise RuntimeError("no way")


@pytest.fixture
def fickle(monkeypatch: pytest.MonkeyPatch) -> type[ScriptedExchange]:
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(everything), raising=False)
    monkeypatch.setattr(ScriptedExchange, "fails_to", set(), raising=False)
    return ScriptedExchange


def registry(*, has_plugin: bool = True) -> PluginRegistry:
    module = ModuleType("fickle_plugin")

    @hookimpl
    def gateway_exchange_types() -> dict[str, object]:
        return {TYPE: ScriptedExchange}

    module.gateway_exchange_types = gateway_exchange_types  # type: ignore[attr-defined]
    plugins = PluginRegistry()
    for found in find_plugins():
        plugins.add(found)
    if has_plugin:
        plugins.add(FoundPlugin(NAME, "fickle.py", lambda: module))
    return plugins


@pytest.fixture
def broker(fickle: type[ScriptedExchange]) -> MemoryBroker:
    broker = MemoryBroker(MemoryStore(), registry=registry())
    broker.vhost = broker.kernel.declare_vhost("fickle", plugins={NAME: {}})
    return broker


@pytest.fixture
def faults(broker: MemoryBroker) -> list[Event]:
    faults: list[Event] = []
    broker.kernel.events.subscribe(lambda event: faults.append(event) if event.name == FAULT else None)
    return faults


def fickle_exchange(broker: MemoryBroker, **arguments: object) -> Exchange:
    return broker.vhost.declare_exchange("odd", TYPE, is_durable=True, arguments=arguments)  # type: ignore[arg-type]


def bound_queue(broker: MemoryBroker, exchange: Exchange, name: str = "q") -> object:
    queue = broker.vhost.declare_queue(name, is_durable=True)
    broker.vhost.bind(exchange, queue, "")
    return queue


# route()


def a_deleted_queue(type: ScriptedExchange) -> object:
    queue = type.bound[0].destination
    queue.is_deleted = True  # type: ignore[union-attr]
    return [queue]


def one_and_then_nothing(type: ScriptedExchange) -> Iterator[object]:
    yield type.bound[0].destination
    raise RuntimeError("no more")


def exiting(type: ScriptedExchange) -> object:
    raise SystemExit(3)


def cancelled(type: ScriptedExchange) -> object:
    raise CancelledError


WRONG_ANSWERS = [
    pytest.param(exiting, "SystemExit: 3", id="raises SystemExit"),
    pytest.param(cancelled, "CancelledError", id="raises CancelledError"),
    pytest.param(failing, "RuntimeError: no way", id="raises"),
    pytest.param(lambda type: None, "TypeError: 'NoneType' object is not iterable", id="None"),
    pytest.param(lambda type: "q", "route() returned 'q', which is not an existing queue or exchange", id="a string"),
    pytest.param(lambda type: [3], "route() returned 3, which is not an existing queue", id="a number"),
    pytest.param(a_deleted_queue, "which is not an existing queue or exchange", id="a deleted queue"),
    pytest.param(one_and_then_nothing, "RuntimeError: no more", id="raises in the middle"),
]


@pytest.mark.parametrize(("answer", "error"), WRONG_ANSWERS)
def test_a_message_is_unroutable_when_its_exchange_type_fails(
    answer: Callable[[ScriptedExchange], object],
    error: str,
    broker: MemoryBroker,
    faults: list[Event],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound_queue(broker, fickle_exchange(broker))
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(answer))
    assert broker.publish("k", exchange="odd") is Verdict.UNROUTED
    (fault,) = faults
    assert (fault.vhost, fault.subject) == ("fickle", "odd")
    assert (fault.details["plugin"], fault.details["exchange_type"]) == (NAME, TYPE)
    assert error in str(fault.details["error"])
    assert str(fault.details["place"]).startswith(f"{__file__}:")
    assert broker.kernel.faults.count_by_kind == {"route": 1}


@pytest.mark.parametrize(("answer", "error"), WRONG_ANSWERS)
def test_a_message_that_a_failing_type_does_not_route_goes_to_the_alternate_exchange(
    answer: Callable[[ScriptedExchange], object], error: str, broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound_queue(broker, fickle_exchange(broker, **{"alternate-exchange": "amq.fanout"}))
    bound_queue(broker, broker.vhost.exchange("amq.fanout"), "kept")
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(answer))
    assert broker.publish("k", b"safe", exchange="odd") is Verdict.TAKEN
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("kept"))
    assert recipient.bodies == [b"safe"], error


def test_valid_destinations_next_to_an_invalid_one_get_the_message(
    broker: MemoryBroker, faults: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound_queue(broker, fickle_exchange(broker))
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(lambda type: [None, type.bound[0].destination]))
    assert broker.publish("k", exchange="odd") is Verdict.TAKEN
    assert len(faults) == 1


def test_a_route_is_not_cached_after_a_fault(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedExchange, "routes_by_key", True, raising=False)
    bound_queue(broker, fickle_exchange(broker))
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(failing))
    assert broker.publish("k", exchange="odd") is Verdict.UNROUTED
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(everything))
    assert broker.publish("k", exchange="odd") is Verdict.TAKEN


def test_the_timer_of_a_queue_continues_when_a_dead_letter_meets_a_failing_type(
    broker: MemoryBroker, faults: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    bound_queue(broker, fickle_exchange(broker, **{"alternate-exchange": "amq.fanout"}))
    bound_queue(broker, broker.vhost.exchange("amq.fanout"), "kept")
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "odd"}
    broker.vhost.declare_queue("dying", is_durable=True, arguments=arguments)
    monkeypatch.setattr(ScriptedExchange, "answer", staticmethod(failing))
    broker.publish("dying", b"one")
    broker.advance(2)
    broker.publish("dying", b"two")
    broker.advance(2)
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("kept"))
    assert recipient.bodies == [b"one", b"two"]
    assert len(broker.vhost.queue("dying").ready) == 0
    assert len(faults) == 2


# Declaring and binding


def test_a_failing_factory_refuses_the_declaration(broker: MemoryBroker, faults: list[Event]) -> None:
    ScriptedExchange.fails_to.add("declare")
    with pytest.raises(PreconditionFailed, match=r"exchange type 'x-fickle' failed to make exchange 'odd': KeyError"):
        fickle_exchange(broker)
    assert "odd" not in broker.vhost.exchange_by_name
    assert [fault.details["kind"] for fault in faults] == ["declare"]


def test_a_factory_that_returns_an_invalid_object_refuses_the_declaration(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(broker.vhost.exchange_types, TYPE, lambda arguments: None)  # type: ignore[arg-type]
    with pytest.raises(PreconditionFailed, match=r"the factory returned None, which has no bind\(\)"):
        fickle_exchange(broker)


def test_a_binding_that_fails_is_refused_and_not_stored(broker: MemoryBroker, faults: list[Event]) -> None:
    exchange = fickle_exchange(broker)
    ScriptedExchange.fails_to.add("bind")
    with pytest.raises(PreconditionFailed, match=r"failed to bind 'q': ZeroDivisionError: bound to fail"):
        bound_queue(broker, exchange)
    assert broker.vhost.bindings.of(exchange) == []
    assert [fault.details["plugin"] for fault in faults] == [NAME]


def test_a_queue_is_deleted_even_if_its_exchange_type_fails(broker: MemoryBroker, faults: list[Event]) -> None:
    exchange = fickle_exchange(broker)
    queue = bound_queue(broker, exchange)
    ScriptedExchange.fails_to.add("unbind")
    broker.vhost.delete_queue(queue)  # type: ignore[arg-type]
    assert broker.vhost.bindings.of(exchange) == []
    assert "q" not in broker.vhost.queue_by_name
    assert [fault.details["kind"] for fault in faults] == ["unbind"]
    assert broker.publish("k", exchange="odd") is Verdict.UNROUTED  # the type still returns the deleted queue


# Exchanges of a missing type


def without_the_plugin(broker: MemoryBroker) -> MemoryBroker:
    """Return the broker after a restart without the plugin."""
    broker.commit()
    next_broker = MemoryBroker.__new__(MemoryBroker)
    # the virtual host's record names the plugin, which is missing in the new registry
    plugins = registry(has_plugin=False)
    module = ModuleType("empty_plugin")

    @hookimpl
    def gateway_exchange_types() -> dict[str, object]:
        return {}

    module.gateway_exchange_types = gateway_exchange_types  # type: ignore[attr-defined]
    plugins.add(FoundPlugin(NAME, "fickle.py", lambda: module))
    next_broker.__init__(broker.store.reopened(), clock=broker.clock, registry=plugins)  # type: ignore[misc]
    next_broker.vhost = next_broker.kernel.vhost("fickle")
    return next_broker


def test_an_exchange_of_a_missing_type_is_inert_and_keeps_its_bindings(broker: MemoryBroker) -> None:
    bound_queue(broker, fickle_exchange(broker))
    broker.publish("k", b"before", exchange="odd", is_persistent=True)
    started = without_the_plugin(broker)
    exchange = started.vhost.exchange("odd")
    assert exchange.inert_reason.startswith("unknown exchange type 'x-fickle'; repair or enable the plugin")
    assert [binding.destination.name for binding in started.vhost.bindings.of(exchange)] == ["q"]
    with pytest.raises(PreconditionFailed, match=r"exchange 'odd' in vhost 'fickle' is inert: unknown exchange type"):
        exchange.require_working()
    recipient = Recipient()
    recipient.consume(started.vhost.queue("q"))
    assert recipient.bodies == [b"before"]


def test_an_inert_exchange_can_be_declared_again_as_it_is_and_not_otherwise(broker: MemoryBroker) -> None:
    fickle_exchange(broker)
    started = without_the_plugin(broker)
    assert fickle_exchange(started) is started.vhost.exchange("odd")
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'durable'"):
        started.vhost.declare_exchange("odd", TYPE)
    with pytest.raises(CommandInvalid, match="unknown exchange type 'x-fickle'"):
        started.vhost.declare_exchange("new", TYPE)


def test_an_inert_exchange_works_again_once_its_plugin_is_back(broker: MemoryBroker) -> None:
    bound_queue(broker, fickle_exchange(broker))
    started = without_the_plugin(broker)
    started.commit()
    again = MemoryBroker(started.store.reopened(), clock=broker.clock, registry=registry())
    again.vhost = again.kernel.vhost("fickle")
    assert again.vhost.exchange("odd").inert_reason == ""
    assert again.publish("k", exchange="odd") is Verdict.TAKEN


def test_a_delayed_exchange_of_a_missing_type_keeps_its_messages(broker: MemoryBroker) -> None:
    arguments = {"x-delayed-type": TYPE}
    exchange = broker.vhost.declare_exchange("later", "x-delayed-message", is_durable=True, arguments=arguments)
    bound_queue(broker, exchange)
    broker.publish("k", b"late", exchange="later", is_persistent=True, headers={"x-delay": 1000})
    started = without_the_plugin(broker)
    started.advance(5)
    started.commit()
    again = MemoryBroker(started.store.reopened(), clock=broker.clock, registry=registry())
    again.vhost = again.kernel.vhost("fickle")
    again.advance(1)
    recipient = Recipient()
    recipient.consume(again.vhost.queue("q"))
    assert recipient.bodies == [b"late"]


def test_a_broker_starts_even_if_a_type_fails_for_an_exchange_and_a_binding(broker: MemoryBroker) -> None:
    bound_queue(broker, fickle_exchange(broker))
    broker.commit()
    ScriptedExchange.fails_to.add("bind")
    started = broker.crashed()
    assert len(started.kernel.vhost("fickle").bindings.of(started.kernel.vhost("fickle").exchange("odd"))) == 1
    ScriptedExchange.fails_to.add("declare")
    started = broker.crashed()
    reason = started.kernel.vhost("fickle").exchange("odd").inert_reason
    assert reason.startswith("exchange type 'x-fickle' failed to make exchange 'odd': KeyError: 'x-missing'")


# Access

HERE = Credentials("PLAIN", "anna", "secret", peer_host="127.0.0.1")


class FixedAnswers:
    def __init__(self, answer: object) -> None:
        self._answer = answer

    def authenticate(self, credentials: Credentials, answer: Callable[[object], None]) -> None:
        if isinstance(self._answer, BaseException):
            raise self._answer
        answer(self._answer)

    def permissions(self, principal: Principal, vhost: str) -> object:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


@pytest.mark.parametrize("answer", ["anna", True, 1, {"name": "anna"}])
def test_an_invalid_result_of_an_authenticator_refuses_the_login(answer: object) -> None:
    seen: list[str] = []
    access = Access([FixedAnswers(answer)], [], on_fault=lambda kind, part, error: seen.append(f"{kind}: {error}"))  # type: ignore[list-item]
    answers: list[Principal | None] = []
    access.authenticate(HERE, answers.append)
    assert answers == [None]
    assert seen == [f"authenticator: the authenticator answered {answer!r}, expected a Principal"]


@pytest.mark.parametrize("error", [RuntimeError("down"), SystemExit(1)])
def test_a_failing_authenticator_refuses_the_login(error: BaseException) -> None:
    seen: list[str] = []
    access = Access([FixedAnswers(error)], [], on_fault=lambda kind, *_: seen.append(kind))  # type: ignore[list-item]
    answers: list[Principal | None] = []
    access.authenticate(HERE, answers.append)
    assert (answers, seen) == ([None], ["authenticator"])


@pytest.mark.parametrize("answer", [RuntimeError("down"), SystemExit(1), "all", True])
def test_a_failing_authorizer_refuses_access(answer: object) -> None:
    everything = Permissions("anna", "/", ".*", ".*", ".*")
    seen: list[str] = []
    access = Access([], [FixedAnswers(answer), FixedAnswers(everything)], on_fault=lambda kind, *_: seen.append(kind))  # type: ignore[list-item]
    with pytest.raises(NotAllowed):
        access.enter(Principal("anna"), "/")
    assert seen == ["authorizer"]


def test_an_authenticator_with_a_failing_deferred_refuses_the_login() -> None:
    from twisted.internet.defer import Deferred

    pending: Deferred[None] = Deferred()

    class Later:
        def authenticate(self, credentials: Credentials, answer: object) -> "Deferred[None]":
            return pending

    answers: list[Principal | None] = []
    access = Access([Later()], [], on_fault=lambda *_: None)  # type: ignore[list-item]
    access.authenticate(HERE, answers.append)
    assert answers == []
    pending.errback(RuntimeError("the directory is down"))
    assert answers == [None]
