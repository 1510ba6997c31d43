"""The message workbench of a queue."""

import json
from collections.abc import Iterator

import pytest

from tests.management_client import get, put, request
from tests.running import Gateway
from tests.ui.browser import Browser


@pytest.fixture
def letters(shop: Gateway, browser: Browser) -> Iterator[str]:
    """A queue with three messages; one has the header customer 17."""
    for name in ("letters", "repair"):
        put(shop, f"queues/%2F/{name}", {"durable": True})
    for number, customer in enumerate((16, 17, 18)):
        body = {
            "properties": {"headers": {"customer": customer}},
            "routing_key": "letters",
            "payload_encoding": "string",
        }
        text = json.dumps({"letter": number})
        request(shop, "POST", "exchanges/%2F/amq.default/publish", body | {"payload": text})
    yield "letters"
    browser.open("/")  # the page of a deleted queue would report errors
    for name in ("letters", "repair"):
        request(shop, "DELETE", f"queues/%2F/{name}")


def lengths(shop: Gateway) -> tuple[int, int]:
    return get(shop, "queues/%2F/letters")["messages"], get(shop, "queues/%2F/repair")["messages"]


def test_messages_are_found_by_header_and_moved_after_a_dry_run_and_back(
    browser: Browser, shop: Gateway, letters: str
) -> None:
    browser.open(f"/queues/%2F/{letters}?tab=Workbench")
    browser.fill("Header", "customer")
    browser.fill("Header contains", "17")
    browser.press("Find messages")
    browser.see("1 message, 3 examined")
    browser.see('{"letter": 1}')
    browser.fill("Name of the target", "repair")
    browser.press("Dry run")
    browser.see("1 message of queue 'letters' would be moved to queue 'repair'. Nothing has been changed yet.")
    assert lengths(shop) == (3, 0)
    browser.press("Apply to 1 message")
    browser.see("1 message moved.")
    assert lengths(shop) == (2, 1)
    browser.press("Undo")
    browser.wait(lambda: lengths(shop) == (3, 0), "the move is not undone")


def test_chosen_messages_are_edited_and_deleted(browser: Browser, shop: Gateway, letters: str) -> None:
    browser.open(f"/queues/%2F/{letters}?tab=Workbench")
    browser.press("Find messages")
    browser.see("3 messages, 3 examined")
    browser.press_field("Choose")
    browser.fill("Action", "edit in place")
    browser.fill("New body", "corrected")
    browser.press("Dry run")
    browser.press("Apply to 1 message")
    browser.see("1 message edited.")
    browser.see("corrected")
    browser.press_field("Choose")
    browser.fill("Action", "delete")
    browser.press("Dry run")
    browser.press("Apply to 1 message")
    browser.see("1 message deleted.")
    browser.see("2 messages, 2 examined")
    assert lengths(shop) == (2, 0)
