"""Topology, explain, traces, and publishing and watching by each protocol."""

import pytest

from tests.management_client import request
from tests.running import Gateway
from tests.ui.browser import Browser


def test_the_topology_shows_rates_and_follows_a_selection(browser: Browser) -> None:
    browser.open("/topology")
    browser.wait(lambda: "/s" in " ".join(browser.texts(".drawing .rate")), "no rate is drawn")

    def titles() -> list[str]:
        return browser.texts(".drawing .edge title")

    browser.wait(
        lambda: any(text.startswith("orders → billing") and not text.endswith("; 0/s") for text in titles()),
        lambda: f"no rate between exchanges: {titles()}",
    )
    drawn = len(browser.all(".node"))
    browser.fill("Around", "queue")
    browser.fill("Name", "invoices")
    browser.press("Draw")
    browser.see("Around invoices")
    browser.wait(lambda: 0 < len(browser.all(".node")) < drawn, "the selection is not drawn")
    browser.driver.execute_script(
        "document.querySelector('.node.selected').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    browser.see("Where messages come from")


def test_explain_names_the_queues_and_the_bindings(browser: Browser) -> None:
    browser.open("/explain")
    browser.fill("Exchange", "orders")
    browser.fill("Routing key", "order.eu.paid")
    browser.press("Explain")
    browser.see("Outcome: routed")
    browser.see("invoices")
    browser.fill("Published by", "MQTT: topic")
    browser.fill("Topic", "house/nowhere")
    browser.press("Explain")
    browser.see("Outcome: unroutable")


def test_a_message_is_traced_across_protocols(browser: Browser, shop: Gateway) -> None:
    browser.open("/traces")
    browser.fill("Trace", "every message")
    browser.see("New messages are traced until the broker stops.")
    body = {"properties": {"message_id": "order-4711"}, "routing_key": "house.kitchen.set", "payload": "19"}
    request(shop, "POST", "exchanges/%2F/amq.topic/publish", body | {"payload_encoding": "string"})
    browser.fill("Message id", "order-4711")
    browser.see("mqtt-subscription-thermostat-7qos1: consumed")
    browser.wait(lambda: browser.all(".timeline li"), "no timeline is shown")
    for text in ("published", "enqueued", "delivered", "settled", "MQTT 3-1-1"):
        browser.see(text)
    request(shop, "PUT", "message-traces/%2F", {"sample": 0})


def test_messages_of_one_moment_have_different_names(browser: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "message-traces/%2F", {"sample": 1})
    body = {"properties": {}, "routing_key": "nowhere", "payload": "x", "payload_encoding": "string"}
    for _ in range(3):
        request(shop, "POST", "exchanges/%2F/amq.default/publish", body)
    request(shop, "PUT", "message-traces/%2F", {"sample": 0})
    browser.open("/traces")
    browser.fill("Routing key", "nowhere")
    browser.wait(lambda: len(browser.all(".trace-head")) == 3, "the traces are not shown")
    names = browser.names("section.panel:has(.trace-head)")
    assert len(set(names)) == 3, names


def test_a_message_leads_to_its_trace(browser: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "message-traces/%2F", {"sample": 1})
    body = {"properties": {"message_id": "order-4712"}, "routing_key": "traced", "payload": "19"}
    request(shop, "PUT", "queues/%2F/traced", {"durable": True})
    request(shop, "POST", "exchanges/%2F/amq.default/publish", body | {"payload_encoding": "string"})
    request(shop, "PUT", "message-traces/%2F", {"sample": 0})
    browser.open("/queues/%2F/traced?tab=Workbench")
    browser.press("Find messages")
    browser.press("Trace")
    browser.see("traced: ready")
    assert browser.field("Message id").get_attribute("value") == "order-4712"
    browser.wait(lambda: browser.all(".timeline li"), "no timeline is shown")
    browser.fill("Virtual host", "All")
    request(shop, "DELETE", "queues/%2F/traced")


def test_messages_are_published_and_watched_by_amqp(browser: Browser) -> None:
    browser.open("/publish")
    browser.fill("Exchange", "audit")
    browser.press("Watch")
    browser.fill("Body", "seen by the watch")
    browser.press("Publish message")
    browser.see("The message is published and routed.")
    browser.wait(lambda: any("seen by the watch" in text for text in browser.texts(".message")), "nothing is received")
    browser.press("Stop")
    browser.see("Nothing is watched yet.") if not browser.all(".message") else browser.press("Clear")


@pytest.mark.parametrize(
    ("protocol", "watched", "to", "send"),
    [
        ("MQTT", ("Topic filter", "browser/#"), ("Topic", "browser/a"), "Publish message"),
        ("STOMP", ("Destination", "/topic/browser"), ("Send to", "/topic/browser"), "Send message"),
    ],
)
def test_messages_are_published_and_watched_over_websockets(
    browser: Browser, protocol: str, watched: tuple[str, str], to: tuple[str, str], send: str
) -> None:
    browser.open(f"/publish?tab={protocol}")
    browser.fill("Password", "guest")
    browser.press("Connect")
    browser.see("connected")
    browser.fill(*watched)
    browser.press("Watch")
    browser.see("Watched")
    browser.fill(*to)
    browser.fill("Body", f"héllo by {protocol}")
    browser.press(send)
    browser.wait(
        lambda: any(f"héllo by {protocol}" in text for text in browser.texts(".message")), "nothing is received"
    )
    browser.press("Disconnect")


def test_a_wrong_password_of_a_websocket_is_explained(browser: Browser) -> None:
    browser.open("/publish?tab=MQTT")
    browser.fill("Password", "wrong")
    browser.press("Connect")
    browser.see("The connection is refused")


def test_the_overview_shows_messages_per_second_of_each_protocol(browser: Browser) -> None:
    browser.open("/")

    def rows() -> dict[str, list[str]]:
        return {row[0]: row for row in (text.split("\t") for text in browser.texts("[aria-label=Protocols] tbody tr"))}

    wanted = ("AMQP 0-9-1", "MQTT 3-1-1", "STOMP 1.2")
    browser.wait(lambda: all(name in rows() for name in wanted), lambda: f"protocols are missing: {rows()}")
    for column in (3, 4):
        browser.wait(
            lambda column=column: all(rows()[name][column] > "1" for name in wanted),
            lambda: f"no messages are counted: {rows()}",
        )
