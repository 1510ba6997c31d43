"""Users, permissions and virtual hosts; and what users without all tags see."""

import pytest

from tests.management_client import get, request
from tests.running import Gateway
from tests.ui.browser import Browser


def test_a_user_is_added_permitted_checked_and_deleted(browser: Browser, shop: Gateway) -> None:
    browser.open("/users")
    browser.press("Add a user")
    browser.fill("Name", "berta")
    browser.fill("Password", "secret")
    browser.fill("Password again", "different")
    browser.press("Add user")
    browser.see("The two passwords differ.")
    browser.fill("Password again", "secret")
    browser.press("Add user")
    browser.see("User 'berta' is added.")
    browser.press("berta")
    browser.see("This user may not enter any virtual host.")
    browser.fill("Configure", "")
    browser.fill("Read", "^orders")
    browser.press("Set permissions")
    browser.see("The permissions of 'berta' in '/' are set.")
    assert get(shop, "permissions/%2F/berta")["read"] == "^orders"
    browser.press("What may this user do?")
    browser.fill("Name", "orders.new")
    browser.press("Check")
    browser.see("refused configure")
    browser.see("allowed read")
    browser.press("Delete")
    browser.see("Delete user 'berta'?")
    browser.press("Delete")
    browser.see("User 'berta' is deleted.")


def test_a_virtual_host_is_added_limited_protected_and_deleted(browser: Browser, shop: Gateway) -> None:
    browser.open("/vhosts")
    browser.press("Add a virtual host")
    browser.fill("Name", "trial")
    browser.press("Add virtual host")
    browser.see("Virtual host 'trial' is added")
    browser.press("trial")
    browser.press("Limits")
    browser.fill("max-queues", "5")
    browser.press("Set limits")
    browser.see("The limits are set.")
    assert get(shop, "vhost-limits/trial")[0]["value"] == {"max-queues": 5}
    browser.press("Protect from deletion")
    browser.see("'trial' is protected from deletion.")
    browser.press("Remove protection")
    browser.see("'trial' can be deleted again.")
    browser.press("Delete")
    browser.fill("Type trial to confirm", "trial")
    browser.press("Delete")
    browser.see("Virtual host 'trial' is deleted.")
    assert "trial" not in [each["name"] for each in get(shop, "vhosts")]


SEEN = {
    "anna": ({"Overview", "Connections", "Where is my message?", "Policies"}, {"Users", "Plugins", "Definitions"}),
    "otto": (
        {"Overview", "Queues and streams", "Explain a publish"},
        {"Where is my message?", "Users", "Virtual hosts", "Shovels and federation"},
    ),
    "paula": ({"Policies", "Shovels and federation"}, {"Where is my message?", "Trace files", "Plugins"}),
}


@pytest.mark.parametrize("user", SEEN)
def test_the_navigation_follows_the_tags_of_the_user(window: Browser, user: str) -> None:
    shown, hidden = SEEN[user]
    window.log_in(user)
    entries = set(window.texts("nav.nav a"))
    assert shown <= entries
    assert not hidden & entries
    window.open("/users")
    window.see("Your user lacks the tag administrator")


@pytest.mark.parametrize(("user", "tabs"), [("paula", ["Parameters"]), ("anna", ["State"])])
def test_bridges_show_what_the_tags_open(window: Browser, user: str, tabs: list[str]) -> None:
    window.log_in(user)
    window.forget()
    window.open("/bridges")
    window.see("Set a parameter" if "Parameters" in tabs else "There are no shovels.")
    assert window.texts(".tabs a") == tabs
    assert window.complaints() == []


@pytest.mark.parametrize("user", ["otto", "paula", "watcher"])
def test_no_page_of_the_navigation_refuses_what_it_asks_for(window: Browser, user: str) -> None:
    window.log_in(user)
    pages = [str(link.get_attribute("href")).partition("#")[2] for link in window.all("nav.nav a")]
    window.forget()
    for page in filter(None, pages):
        window.open(page)
        window.wait(lambda: not window.all("[aria-busy=true]"), f"{page} is still loading")
        assert window.texts(".notice.bad") == [], page
    assert window.complaints() == []


def test_a_user_sees_only_the_virtual_hosts_with_permissions(window: Browser) -> None:
    window.log_in("otto")
    window.open("/queues")
    window.see("carts")
    assert "backlog" not in window.text
    window.open("/connections")
    window.see("There are no connections.")
    window.open("/queues/%2F/backlog")
    window.see("User not authorised to access virtual host")


def test_a_user_sees_no_action_that_the_permissions_forbid(window: Browser) -> None:
    window.log_in("anna")
    window.open("/queues/%2F/backlog")
    for action in ("Purge", "Delete"):
        window.button(action)
    window.log_in("otto")
    window.open("/queues/shop/carts")
    window.button("Purge")
    window.open("/exchanges/shop/amq.topic?tab=Bindings")
    window.see("There are no bindings.")
    assert "Add a binding" not in window.text
    window.log_in("reader")
    window.open("/queues/%2F/backlog")
    window.button("Purge")
    assert "Delete" not in window.texts(".page-head button")
    window.open("/exchanges/%2F/orders?tab=Publish")
    window.see("You lack the permission to publish to this exchange.")
    window.log_in("watcher")
    window.open("/queues/%2F/backlog?tab=Workbench")
    window.see("You lack the permission to read this queue.")
    assert window.texts(".page-head button") == []
    window.open("/connections")
    window.press(window.wait(lambda: window.texts("tbody th a"), "no connection is listed")[0])
    window.see("Connected since")
    assert "Close connection" not in window.text


def test_a_user_who_is_deleted_is_logged_out(window: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "users/leaver", {"password": "leaver", "tags": "management"})
    window.log_in("leaver")
    request(shop, "DELETE", "users/leaver")
    window.go("/queues")
    window.see("Log in again")
    window.user = ""
    window.forget()


def test_the_audit_record_shows_who_changed_what(browser: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "queues/%2F/audited", {"durable": True})
    request(shop, "DELETE", "queues/%2F/audited")
    browser.open("/audit")
    browser.fill("Action", "queue.deleted")
    browser.fill("Object", "audited")
    browser.see("1 change")
    browser.press(next(name for name in browser.names("button") if name.startswith("Details of change")))
    browser.see("durable")


def test_sessions_and_retained_messages_offer_only_what_the_user_may_do(window: Browser) -> None:
    window.log_in("reader")
    window.forget()
    window.open("/mqtt/sessions/%2F/thermostat-7")
    window.see("may end it.")
    assert window.texts(".page-head button") == []
    window.open("/retained")
    window.see("You may delete only messages of topics to which you may publish.")
    assert "Delete" not in window.text.split()
    window.log_in("anna")
    window.open("/retained")
    window.wait(lambda: window.names(".tree button[aria-label^='Delete ']"), "no message can be deleted")
    window.open("/mqtt/sessions/%2F/thermostat-7")
    window.see("Only an administrator")
    assert window.complaints() == []
