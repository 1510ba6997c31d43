"""A slow columnar worker: only publishers into the archive are blocked, and the backlog is visible."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.broker.conftest import Connect, connect, gateway
from tests.management_client import get, put
from tests.running import Gateway
from tests.waiting import wait_until

__all__ = ["connect", "gateway"]

SETTINGS = ("archive.segment_size=64KiB", "archive.max_backlog=1MiB", "archive.segment_age_s=1")
BODY = bytes(10_000)

#: More than ``archive.max_backlog``; the rest fits into the buffers of a socket, so that pika never waits to send it.
ENOUGH = 1_500_000


def worker_of(gateway: Gateway) -> int | None:
    children = Path(f"/proc/{gateway.child.pid}/task/{gateway.child.pid}/children").read_text().split()
    return int(children[0]) if children else None


def archive(gateway: Gateway) -> dict[str, Any]:
    [found] = get(gateway, "archives/%2F")
    assert isinstance(found, dict)
    return found


def test_only_publishers_into_a_full_archive_are_blocked(gateway: Gateway, connect: Connect) -> None:
    gateway.start(*SETTINGS)
    put(gateway, "policies/%2F/keep", {"pattern": "^kept$", "apply-to": "queues", "definition": {"archive": True}})
    filling = connect()
    kept = filling.channel()
    for queue in ("kept", "free"):
        kept.queue_declare(queue, durable=True, arguments={"x-max-length": 10})
    kept.basic_publish("", "kept", BODY)
    wait_until(lambda: archive(gateway)["filed_offset"], "the worker archives nothing")  # one that starts is replaced
    worker = worker_of(gateway)
    assert worker is not None
    os.kill(worker, signal.SIGSTOP)

    blocked: list[str] = []
    filling.add_on_connection_blocked_callback(lambda _connection, frame: blocked.append(frame.method.reason))
    for _ in range(ENOUGH // len(BODY)):
        kept.basic_publish("", "kept", BODY)
        filling.process_data_events(0.005)
    wait_until(lambda: filling.process_data_events(0.05) or blocked, "the publisher is not blocked")
    assert blocked == ["the archive is behind"]
    wait_until(lambda: archive(gateway)["held_back"], "no publisher is blocked")
    assert archive(gateway)["waiting_bytes"] > 2**20

    free = connect().channel()
    free.confirm_delivery()
    for _ in range(50):
        free.basic_publish("", "free", BODY)  # confirmed, so it was read

    os.kill(worker, signal.SIGCONT)
    unblocked: list[int] = []
    filling.add_on_connection_unblocked_callback(lambda _connection, _frame: unblocked.append(1))
    deadline = time.monotonic() + 20
    while not unblocked:
        filling.process_data_events(0.05)
        assert time.monotonic() < deadline, "the publisher stays blocked"
    kept.basic_publish("", "kept", BODY)
    wait_until(lambda: not archive(gateway)["waiting_bytes"], "the publisher is not unblocked")
    assert not archive(gateway)["held_back"]
