"""A batch larger than memory limits of before is published once, in order, though the broker is killed on its way.

The writers are those of Spark, without Spark: they run in the threads of the test. Everything has its default.
"""

import json
import pickle
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from gateway_spark.errors import BrokerRefused, StagedLost
from gateway_spark.sink import TableWriter
from pyspark_gateway import DefaultSource
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(300)]

SCHEMA = StructType().add("body", "binary")

#: Rows of a task, of 1 KB: two tasks are more than the 32 MiB to which a batch was limited.
ROWS = 18_000

PATIENCE_S = 100.0


def bodies(task: int) -> Iterator[bytes]:
    return (b"%d:%0998d" % (task, number) for number in range(ROWS))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[StreamBroker]:
    """A broker with a durable queue ``copied``, at the same port after each start."""
    with stream_broker(tmp_path / "gateway", f"management.port={free_port()}") as broker:
        with broker.channel() as channel:
            channel.queue_declare("copied", durable=True)
        yield broker


def writer(broker: StreamBroker, batch: str = "1") -> TableWriter:
    options = broker.options(exchange="", routingKey="copied", producerName="kills", batchId=batch, retryTimeout="90s")
    return DefaultSource(options).writer(SCHEMA, False)


def write(job: TableWriter, task: int) -> Any:
    """Run a task of a job, and send its message to the driver."""
    rows = list(bodies(task))
    batches = (pa.RecordBatch.from_pydict({"body": rows[n : n + 1000]}) for n in range(0, ROWS, 1000))
    return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(job)).write(batches)))


def state(broker: StreamBroker) -> dict[str, Any]:
    """Return the batches and the staged rows that the broker lists; nothing while it does not answer."""
    host, port = broker.gateway.addresses["management"]
    connection = HTTPConnection(host, port, timeout=10)
    try:
        authorization = "Basic " + b64encode(b"guest:guest").decode()
        connection.request("GET", "/api/pipeline/%2F/batches", headers={"Authorization": authorization})
        found: dict[str, Any] = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return {"batches": [], "staged": {"bytes": 0}}
    finally:
        connection.close()
    return found


def wait_for(broker: StreamBroker, work: "Future[Any]", condition: Any) -> None:
    """Wait for a state of the broker, or the end of the work."""
    wait_until(lambda: work.done() or condition(state(broker)), lambda: str(state(broker)), timeout_s=PATIENCE_S)


def is_publishing(published: int) -> Any:
    """Return the condition that a batch has published this many rows."""
    return lambda found: any(each["published"] >= published for each in found["batches"])


def received(broker: StreamBroker) -> Iterator[bytes]:
    """Yield the bodies of the queue in order."""
    with broker.channel() as channel:
        for method, _, body in channel.consume("copied", auto_ack=True, inactivity_timeout=5):
            if method is None:
                return
            yield body


def require_all(broker: StreamBroker) -> None:
    """Check that the queue has each row once, in order."""
    found = received(broker)
    for task in range(2):
        for number, body in enumerate(bodies(task)):
            assert next(found, b"none")[:12] == body[:12], (task, number)
    assert next(found, None) is None


def test_a_batch_survives_kills_while_it_is_staged_checked_and_published(broker: StreamBroker) -> None:
    """Nothing but the broker is restarted: the connector repeats its requests."""
    job = writer(broker)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(write, job, 0)
        wait_for(broker, first, lambda found: found["staged"]["bytes"] > 0)
        broker.gateway.restart()
        second = threads.submit(write, job, 1)
        messages = [first.result(PATIENCE_S), second.result(PATIENCE_S)]
        broker.gateway.restart()
        commit = threads.submit(job.commit, messages)
        wait_for(broker, commit, lambda found: found["batches"])
        broker.gateway.restart()
        for published in (1, ROWS // 2, ROWS + 100):
            wait_for(broker, commit, is_publishing(published))
            broker.gateway.restart()
        wait_for(broker, commit, is_publishing(ROWS + ROWS // 2))
        broker.gateway.stop()
        broker.gateway.start()
        commit.result(PATIENCE_S)
    broker.gateway.restart()
    writer(broker).commit(messages)  # a repetition by another driver
    require_all(broker)


def test_the_broker_publishes_a_committed_batch_without_its_driver(broker: StreamBroker) -> None:
    """The driver is killed after its commit; its successor writes the batch again, and stages nothing."""
    job = writer(broker)
    messages = [write(job, task) for task in range(2)]
    with ThreadPoolExecutor(1) as threads:
        commit = threads.submit(job.commit, messages)
        wait_for(broker, commit, is_publishing(1))
        broker.gateway.restart()
        successor = writer(broker)
        again = [write(successor, 1), write(successor, 0)]  # in another order
        assert [each.parts for each in again] == [0, 0]
        successor.commit(again)
        commit.result(PATIENCE_S)
    require_all(broker)
    wait_until(lambda: state(broker)["staged"]["bytes"] == 0, timeout_s=PATIENCE_S)


def test_a_job_that_runs_again_replaces_what_its_killed_driver_has_staged(broker: StreamBroker) -> None:
    """The broker is restarted between the two, and an executor of the killed job sends rows for a while."""
    killed = writer(broker)
    staged = write(killed, 0)
    size = state(broker)["staged"]["bytes"]
    broker.gateway.restart()
    successor = writer(broker)
    messages = [write(successor, 0)]
    assert state(broker)["staged"] == {"attempts": 1, "bytes": size, "limit": 64 * 2**30}
    with pytest.raises(BrokerRefused, match="the batch is written by a run that began later"):
        write(killed, 1)
    with pytest.raises(StagedLost):
        killed.commit([staged])
    successor.commit([*messages, write(successor, 1)])
    require_all(broker)
