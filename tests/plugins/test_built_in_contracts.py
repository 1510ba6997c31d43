"""The contracts of gateway.testing hold for the built-in plugins that need no server; the others have own tests."""

from pathlib import Path

import pytest

from gateway.api import Directory
from gateway.patterns import compile_pattern
from gateway.plugins.registry import BUILT_IN_MODULES, load_plugins
from gateway.testing import (
    check_authenticator,
    check_authorizer,
    check_event_listener,
    check_exchange_type,
    check_tracer,
)
from gateway.testing.event_listener import StandInObservedVhost

PASSWORD_OF_MOSQUITTO = (
    "$7$101$nQ4hz6Q1SCZcQ3d3$xJFRtMnCgOw1AHyFAiN0va9asFxjikX6UYXJa8+EMM5FxfKU8KNuPFo4CjTsVymNWqLXfQb1yQ/QcM1bHtW9rg=="
)

SELECTORS = [{"x-jms-selector": "animal = 'dog'"}, {"x-jms-selector": "TRUE"}]

VIEW = load_plugins().view("/", {})


@pytest.mark.parametrize("type_name", VIEW.exchange_types)
def test_an_exchange_type_keeps_its_contract(type_name: str) -> None:
    bindings = {"binding_arguments": SELECTORS} if type_name == "x-jms-topic" else {}
    check_exchange_type(VIEW.exchange_types[type_name], **bindings)  # type: ignore[arg-type]
    assert VIEW.plugin_of(type_name) in BUILT_IN_MODULES


@pytest.mark.parametrize("name", ["tracing-firehose", "tracing-json-lines"])
def test_a_tracer_keeps_its_contract(name: str, tmp_path: Path) -> None:
    settings = {} if name == "tracing-firehose" else {"path": str(tmp_path / "lines")}
    view = load_plugins().view("/", {name: settings})
    found = [tracer for tracer in view.tracers(StandInObservedVhost()) if view.plugin_of(tracer) == name]
    assert found
    for tracer in found:
        check_tracer(lambda vhost, tracer=tracer: tracer)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["event-exchange", "log-exchange"])
def test_an_event_listener_keeps_its_contract(name: str) -> None:
    view = load_plugins().view("/", {name: {}})
    (listener,) = view.event_listeners(StandInObservedVhost())
    check_event_listener(lambda vhost: listener)
    assert view.plugin_of(listener) == name


def test_the_files_of_mosquitto_keep_the_contracts_of_access(tmp_path: Path) -> None:
    passwords, topics = tmp_path / "passwords", tmp_path / "topics"
    passwords.write_text(f"anna:{PASSWORD_OF_MOSQUITTO}\n")
    topics.write_text("user anna\ntopic readwrite shop/#\n")
    settings = {"password_file": str(passwords), "acl_file": str(topics)}
    view = load_plugins().view("/", {"auth-mosquitto": settings})
    directory = Directory(lambda change: None, compile_pattern)
    own = [part for part in view.authenticators(directory) if view.plugin_of(part) == "auth-mosquitto"]
    rules = [part for part in view.authorizers(directory) if view.plugin_of(part) == "auth-mosquitto"]
    assert own
    assert rules
    for authenticator in own:
        check_authenticator(authenticator)
    for authorizer in rules:
        check_authorizer(authorizer)
    assert list(view.close()) == []
