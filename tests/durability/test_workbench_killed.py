"""Kills while the workbench moves messages, and while it undoes that: no message is lost or in two queues."""

import http.client
import json
import random
from base64 import b64encode
from typing import Any, Final

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.broker.conftest import Connect
from tests.running import Gateway
from tests.waiting import wait_until

KILLS: Final = 6
MESSAGES: Final = 6000
_CREDENTIALS: Final = "Basic " + b64encode(b"guest:guest").decode()


def ask(gateway: Gateway, method: str, path: str, fields: object = None) -> Any:
    """The JSON of an answer."""
    host, port = gateway.addresses["management"]
    connection = http.client.HTTPConnection(host, port, timeout=20)
    body = None if fields is None else json.dumps(fields)
    headers = {"Authorization": _CREDENTIALS, "Content-Type": "application/json"}
    connection.request(method, f"/api/workbench{path}", body, headers)
    answer = connection.getresponse()
    assert answer.status < 300, answer.read()
    return json.loads(answer.read())


def drain(channel: BlockingChannel, queue: str) -> list[str]:
    """Consume all messages of a queue."""
    found: list[str] = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None or body is None:
            return found
        found.append(body.decode())


def kill_within(gateway: Gateway, job: Any, rng: random.Random) -> None:
    """Kill the broker when the job has done a random part of its work."""
    part = rng.randrange(MESSAGES)

    def is_reached() -> bool:
        report = ask(gateway, "GET", f"/jobs/{job['id']}")
        return bool(report["done"] >= part or report["state"] != "running")

    wait_until(is_reached, lambda: "the job makes no progress", timeout_s=30)
    gateway.restart()


@pytest.mark.timeout(180)
def test_no_message_is_lost_or_doubled(gateway: Gateway, connect: Connect) -> None:
    rng = random.Random()
    gateway.start()
    channel = connect().channel()
    channel.confirm_delivery()
    for queue in ("source", "target"):
        channel.queue_declare(queue, durable=True)
    bodies = [str(number) for number in range(MESSAGES)]
    for body in bodies:
        channel.basic_publish("", "source", body.encode(), pika.BasicProperties(delivery_mode=2))
    fields = {"filter": {}, "to": {"queue": "target"}, "dry_run": False, "wait_s": 0}
    for kill in range(KILLS):
        undoable = ask(gateway, "GET", "/undo")
        if kill % 2 and undoable:
            job = ask(gateway, "POST", f"/undo/{undoable[-1]['id']}", {"wait_s": 0})
        else:
            job = ask(gateway, "POST", "/%2F/source/move", fields)
        kill_within(gateway, job, rng)
    for undone in reversed(ask(gateway, "GET", "/undo")):
        ask(gateway, "POST", f"/undo/{undone['id']}", {"wait_s": 60})
    channel = connect().channel()
    found, moved = drain(channel, "source"), drain(channel, "target")
    assert sorted(found + moved, key=int) == bodies
    assert found == sorted(found, key=int)
