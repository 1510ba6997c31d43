"""Rate limits of one kind of lines; the number of dropped lines is in the next one."""

from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.logs.rate_limit import RateFilter, RateLimit
from gateway.node.event_log import EventLog
from tests.garbage import garbage_of


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_each_kind_has_its_burst_in_each_interval() -> None:
    time = Time()
    limit = RateLimit(2, 10.0, time)
    assert [limit.passes("a") for _ in range(4)] == [0, 0, None, None]
    assert limit.passes("b") == 0
    time.now_s += 10
    assert [limit.passes("a") for _ in range(3)] == [2, 0, None]


def test_an_unlimited_number_of_kinds_takes_bounded_memory() -> None:
    limit = RateLimit(1, 10.0, Time())
    for number in range(5000):
        limit.passes(number)
    assert len(limit._buckets) <= 1000


def test_a_repeated_fault_is_logged_once_a_minute(caplog: object) -> None:
    time = Time()
    log = EventLog(time)
    fault = Event(FAULT, "/", "odd", {"kind": "route", "plugin": "fickle", "place": "f.py:3"})
    for _ in range(5):
        log(fault)
    time.now_s += 60
    log(fault)
    records = [record for record in caplog.records if record.getMessage() == "fault contained"]  # type: ignore[attr-defined]
    assert len(records) == 2
    assert records[0].gateway_fields["plugin"] == "fickle"
    assert records[1].gateway_fields["repeated"] == 4


def test_a_filter_that_a_reload_replaces_leaves_no_cycle() -> None:
    assert garbage_of(lambda: _drop(RateFilter(5))) == []


def _drop(_: RateFilter) -> None:
    """Drop a filter."""
