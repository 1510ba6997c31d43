"""The web UI in a second browser: what depends on the browser most."""

import shutil
from collections.abc import Iterator

import pytest

from tests.interop.tools import program
from tests.management_client import get, request
from tests.running import Gateway
from tests.ui.browser import Browser, firefox


@pytest.fixture(scope="module")
def fox(shop: Gateway) -> Iterator[Browser]:
    """Firefox with an administrator logged in."""
    host, port = shop.addresses["management"]
    with firefox(f"http://{host}:{port}", shutil.which("firefox") or program("firefox-esr")) as browser:
        browser.log_in("guest")
        yield browser


def test_pages_show_charts_lists_and_drawings(fox: Browser) -> None:
    fox.open("/")
    fox.see("Messages per second")
    fox.wait(lambda: fox.all(".chart canvas"), "no chart is drawn")
    fox.open("/queues")
    fox.see("orders.audit")
    fox.open("/topology")
    fox.wait(lambda: fox.all(".drawing .node"), "nothing is drawn")


def test_a_deletion_is_confirmed_in_a_dialog_and_undone(fox: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "queues/%2F/fleeting", {"durable": True})
    fox.open("/queues/%2F/fleeting")
    fox.press("Delete")
    fox.see("Delete 'fleeting'?")
    fox.press("Delete")
    fox.see("Queue 'fleeting' is deleted.")
    fox.press("Undo")
    fox.see("Undone.")
    assert get(shop, "queues/%2F/fleeting")["durable"] is True
    request(shop, "DELETE", "queues/%2F/fleeting")


def test_messages_are_watched_over_a_websocket(fox: Browser) -> None:
    fox.open("/publish?tab=MQTT")
    fox.fill("Password", "guest")
    fox.press("Connect")
    fox.see("connected")
    fox.fill("Topic filter", "fox/#")
    fox.press("Watch")
    fox.see("Watched")
    fox.fill("Topic", "fox/a")
    fox.fill("Body", "from Firefox")
    fox.press("Publish message")
    fox.wait(lambda: any("from Firefox" in text for text in fox.texts(".message")), "nothing is received")


def test_the_keyboard_reaches_pages_and_filters(fox: Browser) -> None:
    fox.open("/")
    fox.keys("gq")
    fox.see("orders.audit")
    fox.keys("/")
    fox.driver.switch_to.active_element.send_keys("backlog")
    fox.see("1 of ")
