"""docs/users.md: the users of its recipes may do what the page says, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pika
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.interop.gateways import gateway_in
from tests.interop.pages.blocks import ROOT
from tests.interop.pages.reader import Reader
from tests.running import Gateway
from tests.waiting import wait_until

#: The reason code of MQTT 5 for a missing permission.
NOT_AUTHORIZED = 0x87


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("users")
    with gateway_in(directory / "gateway") as gateway:
        Reader(gateway, directory / "reader").follow(ROOT / "docs/users.md")
        yield gateway


def channel(gateway: Gateway, user: str, password: str, vhost: str = "webshop") -> BlockingChannel:
    host, port = gateway.addresses["amqp"]
    credentials = pika.PlainCredentials(user, password)
    return pika.BlockingConnection(pika.ConnectionParameters(host, port, vhost, credentials)).channel()


def test_the_administrator_declares_and_each_application_keeps_to_its_own(gateway: Gateway) -> None:
    guest = channel(gateway, "guest", "guest")
    guest.exchange_declare("sales", "topic", durable=True)
    guest.exchange_declare("other", "topic", durable=True)
    billing = channel(gateway, "billing", "a-third-password")
    billing.queue_declare("billing-all", durable=True)
    billing.queue_bind("billing-all", "sales", "#")
    checkout = channel(gateway, "checkout", "another-password")
    checkout.confirm_delivery()
    checkout.basic_publish("sales", "paid", b"1")
    assert billing.basic_get("billing-all", auto_ack=True)[2] == b"1"
    with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
        checkout.basic_publish("other", "paid", b"1")
    for refused in (
        lambda: channel(gateway, "checkout", "another-password").basic_get("billing-all"),
        lambda: channel(gateway, "checkout", "another-password").queue_declare("q"),
        lambda: channel(gateway, "billing", "a-third-password").queue_declare("checkout-1"),
        lambda: channel(gateway, "billing", "a-third-password").queue_bind("billing-all", "other", "#"),
    ):
        with pytest.raises(ChannelClosedByBroker, match="ACCESS_REFUSED"):
            refused()


def test_a_device_has_its_own_topics(gateway: Gateway) -> None:
    codes: dict[str, int] = {}
    client = mqtt.Client(CallbackAPIVersion.VERSION2, "m7", protocol=mqtt.MQTTv5)
    client.username_pw_set("field:meters", "a-fourth-password")
    client.on_subscribe = lambda _client, _data, mid, reasons, _properties: codes.update({f"s{mid}": reasons[0].value})
    client.on_publish = lambda _client, _data, mid, reason, _properties: codes.update({f"p{mid}": reason.value})
    client.connect(*gateway.addresses["mqtt"])
    client.loop_start()
    wait_until(client.is_connected)
    subscribed = [client.subscribe(topic, qos=1)[1] for topic in ("commands/m7/#", "commands/m8/#")]
    published = [client.publish(topic, b"1", qos=1).mid for topic in ("meters/m7/power", "meters/m8/power")]
    wait_until(lambda: len(codes) == 4)
    client.disconnect()
    client.loop_stop()
    assert [codes[f"s{mid}"] for mid in subscribed] == [1, NOT_AUTHORIZED]
    assert [codes[f"p{mid}"] >= 0x80 for mid in published] == [False, True]


def test_the_new_administrator_may_log_in(gateway: Gateway) -> None:
    assert channel(gateway, "ops", "a-long-password", "/").is_open


def test_limits_of_the_page_are_set(gateway: Gateway, tmp_path: Path) -> None:
    from gateway.cli.ctl.main import main

    host, port = gateway.addresses["management"]
    assert main(["--url", f"http://{host}:{port}", "list_vhost_limits", "-p", "webshop"]) == 0
