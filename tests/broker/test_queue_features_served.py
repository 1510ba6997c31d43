"""A plugin's queue feature in a running broker: arguments over AMQP, STOMP and HTTP, policies for MQTT sessions."""

from pathlib import Path

import paho.mqtt.client as paho
import pika
import pytest
import stomp
from click.testing import CliRunner
from pika.exceptions import ChannelClosedByBroker, NackError

from gateway.cli.ctl.main import gatewayctl
from tests.management_client import get, request
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until

#: Rejects messages with more bytes than ``x-acme-max-size``.
PLUGIN = """
from gateway.api import DeathReason, QueueFeature, QueueFeatureType, QueueSetting, Rejection, hookimpl

class MaxSize(QueueFeature):
    def __init__(self, queue):
        self.size = queue.settings["acme-max-size"]
    def on_enqueue(self, message):
        return Rejection(DeathReason.MAXLEN) if len(message.body) > self.size else None

def fault(value):
    return None if isinstance(value, int) and value > 0 else "must be a number of bytes above 0"

@hookimpl
def gateway_queue_features():
    return [QueueFeatureType({"acme-max-size": QueueSetting(fault)}, MaxSize)]
"""


@pytest.fixture
def sized(gateway: Gateway, tmp_path: Path) -> Gateway:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "sized.py").write_text(PLUGIN)
    gateway.start(f"plugins_dir={directory}")
    request(gateway, "PUT", "plugins/%2F/sized", {})
    return gateway


def url(gateway: Gateway) -> str:
    host, port = gateway.addresses["management"]
    return f"http://{host}:{port}"


def test_pika_gets_a_nack_and_a_clear_error(sized: Gateway) -> None:
    host, port = sized.addresses["amqp"]
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True, arguments={"x-acme-max-size": 3})
    channel.basic_publish("", "q", b"abc")
    with pytest.raises(NackError):
        channel.basic_publish("", "q", b"abcd")
    with pytest.raises(
        ChannelClosedByBroker, match=r"invalid arg 'x-acme-max-size' .*must be a number of bytes above 0"
    ):
        channel.queue_declare("r", arguments={"x-acme-max-size": "3"})
    connection.close()
    assert get(sized, "queues/%2F/q")["arguments"] == {"x-acme-max-size": 3}
    assert "inert" not in get(sized, "queues/%2F/q")


def test_the_setting_survives_a_restart_and_the_absence_of_the_plugin(sized: Gateway, tmp_path: Path) -> None:
    request(sized, "PUT", "queues/%2F/q", {"durable": True, "arguments": {"x-acme-max-size": 3}})
    assert get(sized, "plugins/%2F/sized")["queue_settings"] == ["acme-max-size"]
    request(sized, "DELETE", "plugins/%2F/sized")
    assert get(sized, "queues/%2F/q")["inert"] == "argument 'x-acme-max-size': no enabled plugin offers it"
    shown = CliRunner().invoke(gatewayctl, ["--url", url(sized), "-q", "list_queues", "name", "inert"])
    assert "argument 'x-acme-max-size': no enabled plugin offers it" in shown.output
    sized.restart(f"plugins_dir={tmp_path}/plugins")
    assert get(sized, "queues/%2F/q")["inert"] == "argument 'x-acme-max-size': no enabled plugin offers it"


def test_stomp_passes_the_argument_in_a_header(sized: Gateway) -> None:
    client = stomp.Connection12([sized.addresses["stomp"]], vhost="/")
    client.connect("guest", "guest", wait=True)
    client.subscribe("/queue/s", "1", headers={"x-acme-max-size": "3"})
    wait_until(lambda: get(sized, "queues/%2F"), lambda: "the queue is not declared")
    client.disconnect()
    assert get(sized, "queues/%2F/s")["arguments"] == {"x-acme-max-size": 3}


def test_a_policy_gives_it_to_the_queues_of_mqtt_sessions(sized: Gateway) -> None:
    policy = {"pattern": "^mqtt-subscription-", "definition": {"acme-max-size": 3}, "apply-to": "queues"}
    request(sized, "PUT", "policies/%2F/sizes", policy)
    codes: list[int] = []
    received: list[bytes] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "sized", protocol=paho.MQTTv5)
    client.username_pw_set("guest", "guest")
    client.on_subscribe = lambda *answer: codes.append(-1)
    client.on_publish = lambda _client, _data, _mid, code, _properties: codes.append(code.value)
    client.on_message = lambda _client, _data, message: received.append(message.payload)
    client.connect(*sized.addresses["mqtt"])
    client.loop_start()
    client.subscribe("t", 1)
    wait_until(lambda: codes == [-1], lambda: f"not subscribed: {codes}")
    client.publish("t", b"abcd", qos=1)
    client.publish("t", b"abc", qos=1)
    wait_until(lambda: len(codes) == 3 and received, lambda: f"no answers: {codes}")
    client.disconnect()
    stop_loop(client)
    assert (codes[1:], received) == ([0x97, 0], [b"abc"])
