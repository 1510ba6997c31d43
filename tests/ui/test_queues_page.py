"""Queues and exchanges: lists, one object, and the actions on it."""

from tests.management_client import get, put, request
from tests.running import Gateway
from tests.ui.browser import Browser
from tests.ui.traffic import MARKUP


def names(browser: Browser) -> list[str]:
    return browser.texts("tbody th")


def test_a_list_is_filtered_sorted_and_paged_by_the_server(browser: Browser, shop: Gateway) -> None:
    for number in range(30):
        put(shop, f"queues/%2F/paged-{number:02}", {})
    browser.open("/queues?size=25")
    browser.fill("Filter queues by name", "paged-")
    browser.see("30 of")
    assert names(browser) == [f"paged-{number:02}" for number in range(25)]
    browser.press("Next page")
    browser.see("2 of 2")
    browser.wait(
        lambda: names(browser) == [f"paged-{number}" for number in range(25, 30)], "the second page is not shown"
    )
    browser.press("Name")
    browser.press("Name")
    browser.wait(lambda: names(browser)[:1] == ["paged-29"], "the list is not sorted")
    for number in range(30):
        request(shop, "DELETE", f"queues/%2F/paged-{number:02}")


def test_a_queue_is_declared_and_deleted_and_the_deletion_undone(browser: Browser, shop: Gateway) -> None:
    browser.open("/queues")
    browser.press("Declare a queue")
    browser.fill("Name", "declared")
    browser.fill("Arguments: key 1", "x-max-length")
    browser.fill("Arguments: value 1", "10")
    browser.press("Declare")
    browser.see("Queue 'declared' is declared.")
    assert get(shop, "queues/%2F/declared")["arguments"] == {"x-max-length": 10}
    browser.press("declared")
    browser.press("Bindings")
    browser.press("Add a binding")
    browser.fill("From exchange", "amq.topic")
    browser.fill("Routing key", "a.#")
    browser.press("Bind")
    browser.see("'declared' is bound to 'amq.topic'.")
    browser.press("Delete")
    browser.see("Delete 'declared'?")
    browser.press("Delete")
    browser.see("Queue 'declared' is deleted.")
    browser.press("Undo")
    browser.see("Undone.")
    bindings = get(shop, "queues/%2F/declared/bindings")
    assert [each["routing_key"] for each in bindings] == ["declared", "a.#"]
    request(shop, "DELETE", "queues/%2F/declared")


def test_the_form_of_an_opened_panel_keeps_away_from_its_border(browser: Browser) -> None:
    browser.open("/queues")
    browser.press("Declare a queue")
    gap = (
        "return arguments[0].getBoundingClientRect().left - arguments[0].closest('.panel').getBoundingClientRect().left"
    )
    assert browser.driver.execute_script(gap, browser.field("Name")) > 10


def test_the_check_boxes_of_a_form_stand_in_a_row(browser: Browser) -> None:
    browser.open("/exchanges")
    browser.press("Declare an exchange")
    boxes = [browser.field(label).rect for label in ("Durable", "Auto-delete", "Internal")]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]


def test_a_refusal_is_shown_at_its_form(browser: Browser) -> None:
    browser.open("/queues")
    browser.press("Declare a queue")
    browser.fill("Name", "backlog")
    browser.fill("Arguments: key 1", "x-max-length")
    browser.fill("Arguments: value 1", "10")
    browser.press("Declare")
    browser.see("inequivalent arg 'x-max-length'")
    assert "400" in browser.complaints()[0]


def test_messages_are_shown_as_text(browser: Browser) -> None:
    browser.open("/queues/%2F/backlog?tab=Messages")
    browser.press("Get messages")
    browser.see(MARKUP.replace('"', '\\"'))
    browser.see("x-try")
    browser.open("/queues")
    browser.see(MARKUP)
    assert browser.driver.title == "Queues and streams · gateway"


def test_messages_are_published_and_purged(browser: Browser, shop: Gateway) -> None:
    put(shop, "queues/%2F/letters", {})
    browser.open("/queues/%2F/letters?tab=Messages")
    browser.press("Publish to this queue")
    browser.fill("Body", "hello")
    browser.press("Publish message")
    browser.see("The message is published and routed.")
    browser.press("Get messages")
    browser.see("hello")
    browser.press("Purge")
    browser.see("1 ready message will be deleted.")
    browser.press("Purge")
    browser.see("The ready messages of 'letters' are deleted.")
    assert get(shop, "queues/%2F/letters")["messages"] == 0
    request(shop, "DELETE", "queues/%2F/letters")


def test_settings_name_their_source(browser: Browser) -> None:
    browser.open("/queues/%2F/orders.new?tab=Settings")
    for text in ("max-length", "policy limits", "operator policy cap", "max-priority", "argument"):
        browser.see(text)


def test_an_exchange_is_declared_published_to_and_deleted(browser: Browser, shop: Gateway) -> None:
    browser.open("/exchanges")
    browser.press("Declare an exchange")
    browser.fill("Name", "news")
    browser.fill("Type", "fanout")
    browser.press("Declare")
    browser.see("Exchange 'news' is declared.")
    browser.open("/exchanges/%2F/news?tab=Publish")
    browser.press("Publish message")
    browser.see("no queue is bound for it: it is dropped")
    browser.press("Delete")
    browser.see("Delete 'news'?")
    browser.press("Delete")
    browser.see("Exchange 'news' is deleted.")
    assert "news" not in [exchange["name"] for exchange in get(shop, "exchanges/%2F")]
