"""A store of an earlier version opens with all its content.

``kept/store-aed053a.tar.xz`` is the data directory of the broker at commit aed053a, stopped cleanly after AMQP and MQTT
clients had filled it. The broker starts at that time: sessions and messages expire by the time of day.
"""

import json
import os
import tarfile
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

import pika
import pytest

from tests.broker.conftest import Connect
from tests.running import Gateway

KEPT: Final = Path(__file__).parent / "kept" / "store-aed053a.tar.xz"

#: A directory of modules that set the clock of a process back.
CLOCK: Final = Path(__file__).parent / "kept" / "clock"


@pytest.fixture
def earlier(gateway: Gateway) -> Gateway:
    with tarfile.open(KEPT) as archive:
        archive.extractall(gateway.directory)
    gateway.environment = {**os.environ, "PYTHONPATH": str(CLOCK)}
    return gateway.start("storage.compact_at=0")


def ask(gateway: Gateway, path: str, user: str = "guest:guest") -> Any:  # Any: JSON
    host, port = gateway.addresses["management"]
    request = urllib.request.Request(f"http://{host}:{port}/api/{path}")
    request.add_header("Authorization", "Basic " + b64encode(user.encode()).decode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def test_topology_users_policies_and_parameters_are_restored(earlier: Gateway) -> None:
    assert "set_aside=0" in earlier.log
    assert {vhost["name"]: vhost["description"] for vhost in ask(earlier, "vhosts")}["other"] == "another"
    assert ask(earlier, "whoami", "orders:secret")["tags"] == ["monitoring"], "the password, hashed as it was then"
    (permission,) = ask(earlier, "users/orders/permissions")
    assert [permission[key] for key in ("vhost", "configure", "write", "read")] == ["other", "^a", ".*", "b$"]
    (policy,) = ask(earlier, "policies")
    assert (policy["name"], policy["pattern"], policy["priority"]) == ("limits", "^classic$", 3)
    assert policy["definition"] == {"max-length": 100, "message-ttl": 10**9}
    assert ask(earlier, "queues/%2F/classic")["policy"] == "limits"
    assert ask(earlier, "global-parameters/mine")["value"] == {"a": [1, 2.5, None, True, "\u20ac"]}
    assert ask(earlier, "exchanges/%2F/headers")["arguments"] == {"alternate-exchange": "amq.fanout"}
    arguments = [binding["arguments"] for binding in ask(earlier, "bindings/%2F/e/headers/q/classic")]
    assert arguments == [{"x-match": "all", "colour": "blue", "n": 7}]
    assert [binding["routing_key"] for binding in ask(earlier, "bindings/%2F/e/amq.topic/e/inner")] == ["a.#"]
    kinds = {queue["name"]: queue["type"] for queue in ask(earlier, "queues/%2F")}
    assert {name: kinds[name] for name in ("classic", "quorum", "log")} == {
        "classic": "classic", "quorum": "quorum", "log": "stream",
    }  # fmt: skip


def test_messages_are_restored_in_order_with_their_properties(earlier: Gateway, connect: Connect) -> None:
    channel = connect().channel()
    found = [channel.basic_get("classic") for _ in range(6)]
    assert [body for _, _, body in found] == [*(b"classic %d" % number for number in (4, 3, 2, 1, 0)), b"\0\xff" * 5000]
    assert [properties.message_id for _, properties, _ in found[:5]] == ["m4", "m3", "m2", "m1", "m0"]
    assert found[0][1].headers == {"colour": "blue", "n": 7}
    assert channel.basic_get("classic")[0] is None
    method, properties, body = channel.basic_get("quorum")
    assert (method.redelivered, properties.expiration, body) == (True, "315360000000", b"through two exchanges")
    assert properties.headers["x-delivery-count"] == 1


def test_a_stream_continues_at_its_last_offset(earlier: Gateway, connect: Connect) -> None:
    channel = connect().channel()
    channel.confirm_delivery()
    channel.basic_publish("", "log", b"line 40 ", pika.BasicProperties(delivery_mode=2))
    channel.basic_qos(prefetch_count=50)
    offsets, lines = [], []
    for method, properties, body in channel.consume(
        "log", arguments={"x-stream-offset": "first"}, inactivity_timeout=10
    ):
        assert body is not None, f"nothing came behind line {len(lines)}"
        offsets.append(properties.headers["x-stream-offset"])
        lines.append(body[:8].rstrip(b"\0"))
        channel.basic_ack(method.delivery_tag)
        if len(lines) == 41:
            break
    assert offsets == list(range(41))
    assert lines == [(b"line %d " % number)[:8] for number in range(41)]


def test_mqtt_sessions_and_retained_messages_are_restored(earlier: Gateway) -> None:
    (session,) = ask(earlier, "mqtt/sessions/%2F")
    assert session["client_id"] == "device"
    assert [each["topic"] for each in ask(earlier, "mqtt/retained/%2F")] == ["sensors/kept"]
    (queue,) = [queue for queue in ask(earlier, "queues/%2F") if "device" in queue["name"]]
    assert queue["messages"] == 1
