"""The depths of queues as of a moment: what a real broker had in its queues at that moment."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from gateway.sql.api import SqlFailed
from tests.cli.ctl.running import Ctl
from tests.cli.sql.recorded_api import RecordedApi, select
from tests.management_client import put
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

TIMEOUT_S = 60.0

#: An answer is at most so much older than its moment.
LONGEST = timedelta(seconds=10)

State = dict[str, tuple[int, int]]
"""Ready and unacknowledged messages by queue."""


@pytest.fixture
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A broker that records depths as often as it can."""
    with stream_broker(tmp_path_factory.mktemp("depths"), "depths.interval_s=5") as broker:
        put(broker.gateway, "users/reader", {"password": "reader", "tags": ""})
        put(broker.gateway, "permissions/%2F/reader", {"configure": "", "write": "", "read": "^orders$"})
        yield broker


def depths(broker: StreamBroker, moment: datetime, user: str = "guest") -> State:
    """Return the depths of a moment, and check that they are from a sample shortly before it."""
    asked = (
        f"select queue, messages, ready, unacknowledged, sampled_from, sampled_to from depth('{moment.isoformat()}')"
    )
    found = select(RecordedApi(broker.gateway, user), asked, tags=())
    for _, messages, ready, unacknowledged, begun, ended in found:
        assert messages == ready + unacknowledged
        assert begun <= ended <= moment <= ended + LONGEST
    return {queue: (ready, unacknowledged) for queue, _, ready, unacknowledged, _, _ in found}


def sampled(broker: StreamBroker) -> datetime:
    """Wait for a sample that begins from now on; return the moment at which it had ended."""
    begun = datetime.now(UTC)

    def moment() -> datetime | None:
        asked = f"select max(sampled_to) from depth(now()) where sampled_from >= '{begun.isoformat()}'"
        [(ended,)] = select(RecordedApi(broker.gateway), asked)
        return ended

    found = wait_until(moment, "no sample is recorded", timeout_s=TIMEOUT_S)
    assert found is not None
    return found


def test_the_depth_of_a_moment_is_what_the_queue_had(recording: StreamBroker) -> None:
    seen: list[tuple[datetime, State]] = []
    before = datetime.now(UTC) - timedelta(minutes=1)
    with recording.channel() as channel:
        channel.queue_declare("orders", durable=True)
        channel.queue_declare("bills", durable=True)
        recording.publish("orders", [b"x"] * 7)
        recording.publish("bills", [b"x"] * 2)
        channel.basic_get("orders")
        seen.append((sampled(recording), {"orders": (6, 1), "bills": (2, 0)}))
        channel.queue_purge("orders")
        channel.queue_delete("bills")
        seen.append((sampled(recording), {"orders": (0, 1)}))
        channel.queue_declare("bills", durable=True)
        channel.queue_declare("of the client", exclusive=True)
        recording.publish("bills", [b"x"])
        seen.append((sampled(recording), {"orders": (0, 1), "bills": (1, 0), "of the client": (0, 0)}))
    recording.gateway.kill()
    killed = datetime.now(UTC)
    wait_until(lambda: datetime.now(UTC) > killed + LONGEST, "the clock stands still", timeout_s=TIMEOUT_S)
    down = datetime.now(UTC)
    recording.gateway.start()
    seen.append((sampled(recording), {"orders": (1, 0), "bills": (1, 0)}))
    for moment, state in seen:
        assert depths(recording, moment) == state, moment
        assert depths(recording, moment, "reader").keys() == {"orders"}
    assert depths(recording, before) == depths(recording, down) == {}


def test_what_the_function_does_not_take_is_an_error(ctl: Ctl, api: RecordedApi) -> None:
    result = ctl("from depth(now())")
    assert (result.code, result.out) == (69, "")
    assert result.err == "Error: the depths of queues are not recorded: set depths.interval_s\n"
    for call in ("depth('yesterday')", "range(2) as each(s), depth(now() - s * interval 1 second)"):
        with pytest.raises(SqlFailed, match="one moment, a constant, such as"):
            select(api, f"from {call}")
    with pytest.raises(SqlFailed, match="table function"):
        select(api, "select depth(now())")
    assert select(api, "from depth(NULL)") == []
