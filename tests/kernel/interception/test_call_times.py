"""The times of interceptors: slow calls are reported with a name, and make the turn read its clock."""

import pytest

from gateway.api import Interceptor, Message, Origin
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.events import Event
from gateway.kernel.plugin_times import CallTime
from gateway.testing import MemoryBroker, plain_message

ORIGIN = Origin("client -> broker", 1, "guest", "amqp091")


class Quick(Interceptor):
    def on_publish(self, message: Message, origin: Origin) -> Message:
        return message


class Failing(Interceptor):
    on_error = "pass"

    def on_publish(self, message: Message, origin: Origin) -> Message:
        raise ValueError("no price")

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        raise ValueError("no price")


class Slow(Interceptor):
    def __init__(self, broker: MemoryBroker, seconds: float) -> None:
        self._broker = broker
        self.seconds = seconds

    def on_publish(self, message: Message, origin: Origin) -> Message:
        self._broker.clock.advance(self.seconds)
        return message

    def on_deliver(self, message: Message, queue: str, origin: Origin) -> Message:
        self._broker.clock.advance(self.seconds)
        return message


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def reports(broker: MemoryBroker) -> list[str]:
    told: list[str] = []
    broker.kernel.journal.budget.on_slow = lambda cause, seconds: told.append(cause)
    return told


def publish(broker: MemoryBroker, times: int = 1) -> None:
    for _ in range(times):
        broker.vhost.interception.published(plain_message("k"), ORIGIN)


def test_a_slow_call_names_its_interceptor(broker: MemoryBroker, reports: list[str]) -> None:
    broker.vhost.interception.apply([Quick(), Slow(broker, 0.02), Quick()])
    publish(broker, 3)
    assert reports == ["the interceptor Slow for a publish, vhost '/'"] * 3


def test_calls_that_take_long_together_name_all_interceptors(broker: MemoryBroker, reports: list[str]) -> None:
    broker.vhost.interception.apply([Slow(broker, 0.003), Slow(broker, 0.004)])
    publish(broker)
    assert reports == ["the interceptors Slow, Slow for a publish, vhost '/'"]


def test_after_a_slow_call_a_thousand_messages_are_timed(broker: MemoryBroker, reports: list[str]) -> None:
    slow = Slow(broker, 0.02)
    broker.vhost.interception.apply([slow])
    publish(broker)
    slow.seconds = 0.0
    publish(broker, 1000)
    slow.seconds = 0.02
    publish(broker, 64)
    assert len(reports) == 2, "a sample of 64"


def test_after_a_long_part_of_a_turn_the_slow_interceptor_is_found(broker: MemoryBroker, reports: list[str]) -> None:
    slow = Slow(broker, 0.0)
    broker.vhost.interception.apply([Quick(), slow])
    publish(broker)
    slow.seconds = 0.02
    publish(broker)
    assert reports == [], "only a sample is timed"
    broker.kernel.journal.budget.took(0.02)
    publish(broker)
    assert reports == [
        "messages through the interceptors Quick, Slow for a publish, vhost '/'",
        "the interceptor Slow for a publish, vhost '/'",
    ]


def test_a_long_part_may_be_reported_after_the_end_of_its_turn(broker: MemoryBroker, reports: list[str]) -> None:
    budget = broker.kernel.journal.budget
    broker.vhost.interception.apply([Quick()])
    publish(broker, 2)
    budget.renew()
    budget.took(0.02)
    budget.took(0.02)
    assert reports == ["messages through the interceptor Quick for a publish, vhost '/'"]


def test_a_part_without_intercepted_messages_has_no_suspect(broker: MemoryBroker, reports: list[str]) -> None:
    budget = broker.kernel.journal.budget
    broker.vhost.interception.apply([Quick()])
    publish(broker, 2)
    budget.renew()
    budget.renew()
    budget.took(0.02)
    assert reports == []


def test_a_part_within_the_budget_of_a_turn_is_nothing_to_look_into(broker: MemoryBroker, reports: list[str]) -> None:
    slow = Slow(broker, 0.0)
    broker.vhost.interception.apply([slow])
    publish(broker, 2)
    broker.kernel.journal.budget.took(0.006)
    slow.seconds = 0.02
    publish(broker)
    assert reports == []


def test_a_slow_delivery_is_reported(broker: MemoryBroker, reports: list[str]) -> None:
    broker.vhost.interception.apply([Slow(broker, 0.02)])
    broker.vhost.interception.delivered(plain_message("k"), "q", ORIGIN)
    assert reports == ["the interceptor Slow for a delivery, vhost '/'"]


def test_each_message_is_timed_while_its_calls_take_notable_time(broker: MemoryBroker) -> None:
    budget = broker.kernel.journal.budget
    slow = Slow(broker, 0.001)
    broker.vhost.interception.apply([slow])
    publish(broker)
    budget.renew()
    publish(broker)
    assert budget.work >= WORK_PER_CLOCK_READING
    slow.seconds = 0.0
    publish(broker, 64)
    assert _measured_calls(broker, slow) == 3


def _times(broker: MemoryBroker) -> dict[object, CallTime]:
    every = broker.kernel.plugins_in_use.times(broker.vhost)
    return {part: time for part, method, time in every if method == "on_publish"}


def _measured_calls(broker: MemoryBroker, interceptor: Interceptor) -> int:
    return _times(broker)[interceptor].calls


@pytest.mark.parametrize(("seconds", "looks"), [(0.0, False), (0.001, True)])
def test_only_notable_calls_make_the_turn_read_its_clock(broker: MemoryBroker, seconds: float, looks: bool) -> None:
    budget = broker.kernel.journal.budget
    budget.renew()
    broker.vhost.interception.apply([Slow(broker, seconds)])
    publish(broker)
    assert (budget.work >= WORK_PER_CLOCK_READING) is looks


def test_a_sample_of_the_calls_is_counted_for_each_interceptor(broker: MemoryBroker) -> None:
    quick, slow = Quick(), Slow(broker, 0.00001)
    broker.vhost.interception.apply([quick, slow])
    publish(broker, 640)
    times = _times(broker)
    assert (times[quick].calls, times[slow].calls) == (10, 10)
    assert times[quick].total_s == 0.0
    assert (round(times[slow].total_s, 6), round(times[slow].longest_s, 6)) == (0.0001, 0.00001)


def test_a_call_beyond_the_limit_is_a_fault_of_the_interceptor(broker: MemoryBroker) -> None:
    faults: list[Event] = []
    broker.kernel.events.subscribe(faults.append)
    broker.vhost.interception.apply([Quick(), Slow(broker, 0.15)])
    publish(broker, 3)
    assert [event.details["part"] for event in faults] == ["Slow"] * 3
    assert faults[0].details["error"] == "Overrun: the call took 150 ms; the limit is 100 ms"
    assert str(faults[0].details["place"]).startswith(__file__)


@pytest.fixture
def faults(broker: MemoryBroker) -> list[Event]:
    """The faults of a broker with an event listener that takes long with each."""
    found: list[Event] = []

    def listen_slowly(event: Event) -> None:
        found.append(event)
        broker.clock.advance(0.15)

    broker.kernel.events.subscribe(listen_slowly)
    return found


def test_the_report_of_a_fault_is_no_time_of_the_next_interceptor(broker: MemoryBroker, faults: list[Event]) -> None:
    broker.vhost.interception.apply([Failing(), Slow(broker, 0.0)])
    publish(broker)
    broker.vhost.interception.delivered(plain_message("k"), "q", ORIGIN)
    assert [event.details["part"] for event in faults] == ["Failing", "Failing"]


def test_the_report_of_a_call_beyond_the_limit_is_no_time_of_the_next_one(
    broker: MemoryBroker, faults: list[Event]
) -> None:
    broker.vhost.interception.apply([Slow(broker, 0.15), Quick()])
    publish(broker)
    broker.vhost.interception.delivered(plain_message("k"), "q", ORIGIN)
    assert [event.details["part"] for event in faults] == ["Slow", "Slow"]


def test_the_report_of_a_fault_makes_no_interceptor_slow(
    broker: MemoryBroker, faults: list[Event], reports: list[str]
) -> None:
    broker.vhost.interception.apply([Failing(), Quick()])
    publish(broker)
    assert len(faults) == 1
    assert reports == []
