"""The latency of appends is that of the last minute, measured from the first attempt of each batch."""

from gateway.cluster.append_times import AppendLatency, AppendTimes
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import UNCLAIMED, QueueId
from gateway.testing.clock import FakeClock
from tests.cluster.scripted_logs import ScriptedLogs, run
from tests.cluster.test_log_writer import LOST, Owner


def test_percentiles_are_those_of_the_last_minute() -> None:
    times = AppendTimes()
    assert times.latency(0) == AppendLatency()
    times.note(1.0, 9.0)
    for at in range(100):
        times.note(100.0, (at + 1) / 1000)
    assert times.latency(100) == AppendLatency(100, 50.0, 99.0, 100.0)
    assert times.latency(161) == AppendLatency()


def test_the_time_of_a_batch_counts_from_its_first_attempt() -> None:
    clock = FakeClock()
    logs = ScriptedLogs(clock)
    writer: LogWriter = Owner(logs, clock, UNCLAIMED).writer
    logs.answers = [LOST]
    writer.append(b"a")
    clock.advance(0)
    for _ in range(30):
        clock.advance(0.01)
    latency = writer.times.latency(clock.monotonic_s())
    assert (latency.count, 100 <= latency.last_ms <= 130) == (1, True)
    assert run(logs.owner(QueueId(1))) is not None
