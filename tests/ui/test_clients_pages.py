"""Connections, channels, MQTT sessions, retained messages, STOMP subscriptions and streams."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import paho.mqtt.client as mqtt
import pika
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from tests.management_client import get
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.ui.browser import Browser
from tests.waiting import wait_until


@contextmanager
def mqtt_client(gateway: Gateway, name: str) -> Iterator[mqtt.Client]:
    client = mqtt.Client(CallbackAPIVersion.VERSION2, name, clean_session=False, reconnect_on_failure=False)
    client.username_pw_set("guest", "guest")
    client.connect(*gateway.addresses["mqtt"])
    client.loop_start()
    wait_until(client.is_connected)
    try:
        yield client
    finally:
        client.disconnect()
        stop_loop(client)


def test_a_connection_is_closed_with_a_reason(browser: Browser, shop: Gateway) -> None:
    host, port = shop.addresses["amqp"]
    properties = {"connection_name": "to be closed"}
    connection = pika.BlockingConnection(pika.ConnectionParameters(host, port, client_properties=properties))
    browser.open("/connections")
    browser.see("to be closed")
    name = next(each["name"] for each in get(shop, "connections") if each.get("user_provided_name") == "to be closed")
    browser.press(name)
    browser.see("Pika Python Client Library")
    browser.press("Close connection")
    browser.fill("Reason", "maintenance")
    browser.press("Close")
    browser.see("The connection is closed.")
    with pytest.raises(pika.exceptions.ConnectionClosed, match="maintenance"):
        wait_until(lambda: connection.process_data_events(time_limit=0.1))


def test_channels_lead_to_their_connection(browser: Browser) -> None:
    browser.open("/channels")
    browser.see("confirms")
    browser.wait(lambda: any(re.fullmatch(r"\d+\.\d", text) for text in browser.texts("td")), "no rate is shown")


def test_an_mqtt_session_is_shown_and_ended(browser: Browser, shop: Gateway) -> None:
    with mqtt_client(shop, "lamp-3") as client:
        client.subscribe("lamps/#", 1)
        browser.open("/mqtt/sessions")
        browser.press("lamp-3")
        browser.see("lamps/#")
        browser.press("End session")
        browser.see("End the session of 'lamp-3'?")
        browser.press("End session")
        browser.see("The session of 'lamp-3' is ended.")
        wait_until(lambda: not client.is_connected())
    assert [each["client_id"] for each in get(shop, "mqtt/sessions")] == ["thermostat-7"]


def test_a_retained_message_is_deleted_from_the_tree(browser: Browser, shop: Gateway) -> None:
    with mqtt_client(shop, "sensor") as client:
        client.publish("garden/pond/level", b"7", qos=1, retain=True).wait_for_publish(10)
    browser.open("/retained")
    browser.see("pond")
    browser.press("Delete garden/pond/level")
    browser.see("Delete a retained message?")
    browser.press("Delete")
    browser.see("The retained message of 'garden/pond/level' is deleted.")
    browser.see_not("pond\n")
    assert "garden/pond/level" not in [each["topic"] for each in get(shop, "mqtt/retained/%2F")]


def test_stomp_subscriptions_lead_to_their_queue(browser: Browser) -> None:
    browser.open("/stomp/subscriptions")
    browser.press("tickets")
    browser.see("Messages waiting")


def test_a_stored_position_is_set_and_forgotten(browser: Browser, shop: Gateway) -> None:
    browser.open("/streams")
    browser.see("dashboard")
    browser.press("Stored positions")
    browser.fill("Consumer", "report")
    browser.fill("Last processed offset", "3")
    browser.press("Set position")
    browser.see("The position of 'report' is set.")
    assert get(shop, "stream/%2F/events/tracking")["offsets"]["report"] == 3
    browser.press("Forget")
    browser.see("The position of 'report' is forgotten.")
    assert get(shop, "stream/%2F/events/tracking")["offsets"] == {}
    browser.press("Close")
