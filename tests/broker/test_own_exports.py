"""A broker imports the definitions that it exported, even if a plugin is disabled that some of them need."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from tests.management_client import get, request
from tests.running import Gateway

#: An exchange type that routes nothing, and a queue feature without an effect.
PLUGIN = """
from gateway.api import QueueFeature, QueueFeatureType, QueueSetting, hookimpl

class Nowhere:
    def __init__(self, arguments):
        pass
    def bind(self, binding):
        pass
    def unbind(self, binding):
        pass
    def route(self, message):
        return []

@hookimpl
def gateway_exchange_types():
    return {"x-nowhere": Nowhere}

@hookimpl
def gateway_queue_features():
    return [QueueFeatureType({"acme-size": QueueSetting(lambda value: None)}, lambda queue: QueueFeature())]
"""


@pytest.fixture
def disabled(gateway: Gateway, tmp_path: Path) -> Gateway:
    """A broker with an exchange, a queue, a binding and a policy of a plugin that is disabled now."""
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "acme.py").write_text(PLUGIN)
    gateway.start(f"plugins_dir={directory}")
    request(gateway, "PUT", "plugins/%2F/acme", {})
    request(gateway, "PUT", "exchanges/%2F/x", {"type": "x-nowhere", "durable": True})
    delayed = {"type": "x-delayed-message", "durable": True, "arguments": {"x-delayed-type": "x-nowhere"}}
    request(gateway, "PUT", "exchanges/%2F/later", delayed)
    request(gateway, "PUT", "queues/%2F/q", {"durable": True, "arguments": {"x-acme-size": 3}})
    request(gateway, "POST", "bindings/%2F/e/x/q/q", {"routing_key": "key"})
    policy = {"pattern": "^other$", "definition": {"acme-size": 3}, "apply-to": "queues"}
    request(gateway, "PUT", "policies/%2F/sized", policy)
    request(gateway, "DELETE", "plugins/%2F/acme")
    assert get(gateway, "exchanges/%2F/x")["inert"]
    return gateway


def sorted_by_name(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry["name"]))


def test_an_export_is_imported_while_its_plugin_is_disabled(disabled: Gateway) -> None:
    for path in ("definitions", "definitions/%2F"):
        exported = get(disabled, path)
        request(disabled, "POST", path, exported)
        assert get(disabled, path) == exported


def test_an_export_is_no_change_while_its_plugin_is_disabled(disabled: Gateway) -> None:
    exported = get(disabled, "definitions")
    for path in ("definitions-plan?prune=true", "definitions-apply?prune=true"):
        plan = request(disabled, "POST", path, exported)
        assert (plan["steps"], plan["conflict"]) == ([], 0)


def test_an_exchange_of_a_disabled_plugin_that_does_not_exist_is_refused(disabled: Gateway) -> None:
    exported = get(disabled, "definitions")
    request(disabled, "DELETE", "exchanges/%2F/x")
    with pytest.raises(HTTPError, match="400"):
        request(disabled, "POST", "definitions", exported)
    request(disabled, "PUT", "plugins/%2F/acme", {})
    request(disabled, "POST", "definitions", exported)
    assert sorted_by_name(get(disabled, "definitions")["exchanges"]) == sorted_by_name(exported["exchanges"])
