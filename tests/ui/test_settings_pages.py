"""Policies, plugins, parameters of bridges, definitions."""

import json
from pathlib import Path

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


def test_definitions_are_compared_before_they_are_applied(browser: Browser, shop: Gateway) -> None:
    wanted = {
        "queues": [
            {"vhost": "/", "name": "imported", "durable": True, "auto_delete": False, "arguments": {}},
            {"vhost": "/", "name": "backlog", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 1}},
        ],
        "policies": [
            {"vhost": "/", "name": "limits", "pattern": "^orders\\.", "apply-to": "queues", "priority": 2,
             "definition": {"max-length": 10_000, "overflow": "reject-publish"}},
        ],
    }  # fmt: skip
    browser.open("/definitions")
    browser.fill("Definitions", json.dumps(wanted))
    browser.press("Compare")
    browser.see("1 object would be created and 1 object changed")
    browser.see("1 existing queue or exchange with other properties")
    browser.see("priority 1 → 2")
    browser.press("Apply definitions")
    browser.see("The definitions are applied.")
    assert get(shop, "queues/%2F/imported")["durable"] is True
    assert get(shop, "policies/%2F/limits")["priority"] == 2
    request(shop, "DELETE", "queues/%2F/imported")
