"""Policies, plugins, parameters of bridges, definitions."""

import json
from pathlib import Path
from typing import Any

from tests.management_client import get, request
from tests.running import Gateway
from tests.ui.browser import Browser


def test_a_policy_is_previewed_set_removed_and_the_removal_undone(browser: Browser, shop: Gateway) -> None:
    browser.open("/policies")
    browser.fill("Name", "short")
    browser.fill("Pattern", "^backlog$")
    browser.fill("Applies to", "queues")
    browser.fill("Definition: key 1", "max-length")
    browser.fill("Definition: value 1", "7000")
    browser.press("Preview")
    browser.see("It would apply to 1 queue and 0 exchanges, and change 1 object.")
    browser.see("not set → 7000")
    assert "short" not in [policy["name"] for policy in get(shop, "policies/%2F")]
    browser.press("Set policy")
    browser.see("Policy 'short' is set.")
    browser.wait(lambda: "short" in browser.texts("tbody th"), "the policy is not listed")
    assert get(shop, "policies/%2F/short")["definition"] == {"max-length": 7000}
    row = browser.texts("tbody th").index("short")
    browser.driver.execute_script(
        "document.querySelectorAll('tbody tr')[arguments[0]].lastChild.lastElementChild.click()", row
    )
    browser.see("Policy 'short' is removed.")
    browser.press("Undo")
    browser.see("Undone.")
    assert get(shop, "policies/%2F/short")["priority"] == 0
    request(shop, "DELETE", "policies/%2F/short")


def test_a_plugin_is_enabled_and_disabled(browser: Browser, shop: Gateway, tmp_path: Path) -> None:
    name = "tracing-json-lines"
    browser.open(f"/plugins/%2F/{name}")
    browser.fill("path", str(tmp_path / "trace.jsonl"))
    browser.fill("files", "2")
    browser.press("Enable")
    browser.see(f"'{name}' is enabled.")
    assert get(shop, f"plugins/%2F/{name}")["settings"] == {"path": str(tmp_path / "trace.jsonl"), "files": 2}
    browser.press("Disable")
    browser.see(f"Disable '{name}'?")
    browser.press("Disable")
    browser.see(f"'{name}' is disabled.")
    assert get(shop, f"plugins/%2F/{name}")["state"] == "disabled"


def test_a_refused_setting_of_a_plugin_is_explained(browser: Browser) -> None:
    browser.open("/plugins/%2F/auth-cache")
    browser.fill("ttl_s", "-1")
    browser.press("Enable")
    browser.see("ttl_s")
    browser.wait(lambda: browser.all(".notice.bad"), "no error is shown")
    assert "400" in browser.complaints()[0]


def test_a_shovel_is_set_shown_and_removed(browser: Browser, shop: Gateway) -> None:
    browser.open("/bridges?tab=Parameters")
    browser.fill("Name", "copy")
    definition = {"src-uri": "amqp://", "src-queue": "shovel-in", "dest-uri": "amqp://", "dest-queue": "shovel-out"}
    browser.fill("Value", json.dumps(definition))
    browser.press("Set parameter")
    browser.see("'copy' is set.")
    browser.open("/bridges")
    browser.see("running")
    browser.see("shovel-out")
    browser.open("/bridges?tab=Parameters")
    browser.press("Remove")
    browser.see("Remove 'copy'?")
    browser.press("Remove")
    browser.see("'copy' is removed.")
    assert get(shop, "shovels") == []


def test_a_bridge_to_mqtt_is_shown_with_the_other_broker(browser: Browser, shop: Gateway) -> None:
    value = {"address": "mqtt://me:hidden@127.0.0.1:1", "topics": "plant/# out"}
    request(shop, "PUT", "parameters/mqtt-bridge/%2F/plant", {"value": value})
    browser.open("/bridges")
    browser.see("MQTT bridge")
    browser.see("mqtt://127.0.0.1:1")
    assert "hidden" not in browser.text
    request(shop, "DELETE", "parameters/mqtt-bridge/%2F/plant")


def test_definitions_are_planned_before_they_are_applied(browser: Browser, shop: Gateway) -> None:
    conflicting = {
        "vhost": "/",
        "name": "backlog",
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-max-length": 1},
    }
    queue = {"vhost": "/", "name": "imported", "durable": True, "auto_delete": False, "arguments": {}}
    limits = {"vhost": "/", "name": "limits", "pattern": "^orders\\.", "apply-to": "queues", "priority": 2,
              "definition": {"max-length": 10_000, "overflow": "reject-publish"}}  # fmt: skip
    browser.open("/definitions")
    browser.fill("Definitions", json.dumps({"queues": [queue, conflicting], "policies": [limits]}))
    browser.press("Compare")
    browser.see("create 1 object, change 1 and delete 0")
    browser.see("1 conflict prevents that anything is applied")
    browser.see("it exists with other properties")
    assert "Apply definitions" not in browser.texts("button")
    browser.fill("Definitions", json.dumps({"queues": [queue], "policies": [limits]}))
    browser.press("Compare")
    browser.see("priority 1 → 2")
    browser.press("Apply definitions")
    browser.see("The definitions are applied.")
    assert get(shop, "queues/%2F/imported")["durable"] is True
    assert get(shop, "policies/%2F/limits")["priority"] == 2
    request(shop, "DELETE", "queues/%2F/imported")


def test_definitions_of_a_virtual_host_delete_what_they_do_not_name(browser: Browser, shop: Gateway) -> None:
    request(shop, "PUT", "vhosts/pruned", {})
    for name in ("kept", "dropped"):
        request(shop, "PUT", f"queues/pruned/{name}", {"durable": True})
    browser.load("/definitions")  # the list of virtual hosts is read once
    browser.wait(lambda: "pruned" in browser.texts("#vhost-choice option"), "the virtual host is not offered")
    browser.fill("Virtual host", "pruned")
    browser.fill("Definitions", json.dumps({"queues": [{"name": "kept", "durable": True, "arguments": {}}]}))
    browser.press_field("Delete what they do not name")
    browser.press("Compare")
    browser.see("create 0 objects, change 0 and delete 1")
    browser.press("Apply definitions")
    browser.see("Delete 1 object?")
    browser.fill("Type delete to confirm", "delete")
    browser.press("Apply definitions")
    browser.see("The definitions are applied.")
    assert [queue["name"] for queue in get(shop, "queues/pruned")] == ["kept"]
    browser.fill("Virtual host", "All")
    request(shop, "DELETE", "vhosts/pruned")


def test_a_plan_that_no_longer_holds_is_not_applied(browser: Browser, shop: Gateway) -> None:
    browser.open("/definitions")
    queues: list[Any] = [{"vhost": "/", "name": name, "durable": True, "arguments": {}} for name in ("late", "later")]
    browser.fill("Definitions", json.dumps({"queues": queues}))
    browser.press("Compare")
    browser.see("create 2 objects")
    request(shop, "PUT", "queues/%2F/late", {"durable": True})
    browser.press("Apply definitions")
    browser.see("the broker is not as it was when the plan was made")
    assert "later" not in [queue["name"] for queue in get(shop, "queues/%2F")]
    assert "409" in browser.complaints()[0]
    request(shop, "DELETE", "queues/%2F/late")


def test_a_trace_is_started_viewed_stopped_resumed_and_deleted(browser: Browser, shop: Gateway) -> None:
    browser.open("/trace-files")
    browser.see("No trace is running.")
    browser.fill("Name", "tickets")
    browser.fill("Pattern", "publish.#")
    browser.press("Start trace")
    browser.see("Messages are written to tickets.log.")
    browser.wait(lambda: get(shop, "trace-files")[0]["size"] > 0, "nothing is traced")
    browser.press("View tickets.log")
    browser.see("Message published")
    browser.press("Close")
    browser.press("Stop tickets")
    browser.see("Trace 'tickets' is stopped; its file stays.")
    browser.press("Undo")
    browser.see("Undone.")
    assert get(shop, "traces/%2F/tickets")["pattern"] == "publish.#"
    browser.press("Stop tickets")
    browser.see("No trace is running.")
    browser.wait(lambda: browser.button("Delete tickets.log").is_enabled(), "the file cannot be deleted")
    browser.press("Delete tickets.log")
    browser.see("Delete tickets.log?")
    browser.press("Delete file")
    browser.see("There are no files.")


def test_the_report_of_a_job_is_shown_without_scripts(browser: Browser, shop: Gateway) -> None:
    browser.open("/pipeline")
    browser.press("Details of rollup")
    browser.see("3 readings were late")
    browser.press("Close")
    address = browser.button("Report of rollup").get_attribute("href")
    window = browser.driver.current_window_handle
    browser.press("Report of rollup")
    browser.wait(lambda: len(browser.driver.window_handles) == 2, "no window opens")
    browser.driver.switch_to.window(next(each for each in browser.driver.window_handles if each != window))
    try:
        browser.see("Daily means")
        assert browser.driver.current_url == address
        assert browser.driver.title == "rollup"
        assert (
            browser.driver.execute_script("return getComputedStyle(document.querySelector('h1')).color")
            == "rgb(1, 2, 3)"
        )
        assert browser.driver.execute_script("return self.origin") == "null"
        assert any("script" in complaint for complaint in browser.complaints())
    finally:
        browser.driver.close()
        browser.driver.switch_to.window(window)
