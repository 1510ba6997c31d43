"""Plugins that stand before the access objects of other plugins, enabled and changed in a running broker."""

from pathlib import Path

import pytest

from gateway.access import Credentials, Principal
from gateway.api import ConfigurationError
from tests.plugins.live import LiveBroker, do

DOOR = """
from gateway.api import Permissions, Principal, hookimpl

ASKED = []

class Door:
    def authenticate(self, credentials, answer):
        ASKED.append(credentials.username)
        answer(Principal(credentials.username))

class Rules:
    def permissions(self, principal, vhost):
        return Permissions(principal.name, vhost, "", "", "")

@hookimpl
def gateway_authenticators():
    return [Door()]

@hookimpl
def gateway_authorizers():
    return [Rules()]
"""

PREFIX = """
from gateway.api import Principal, hookimpl

class Prefixed:
    def __init__(self, plugin, asked):
        self.plugin, self.asked = plugin, asked
    def authenticate(self, credentials, answer):
        self.asked.authenticate(credentials, lambda found: answer(found and Principal(f"{self.plugin}:{found.name}")))

class Prefix:
    def authenticator(self, plugin, asked):
        return AUTHENTICATOR
    def authorizer(self, plugin, asked):
        return asked

@hookimpl
def gateway_access_wrappers(plugins):
    return [Prefix()]
"""


@pytest.fixture
def broker(tmp_path: Path) -> LiveBroker:
    found = LiveBroker(tmp_path)
    found.write("door", DOOR)
    do(found.live.enabling("/", "door"))
    return found


def who(broker: LiveBroker, name: str = "anna") -> str | None:
    answers: list[Principal | None] = []
    broker.access.access_of("/").authenticate(Credentials("PLAIN", name, "any", peer_host="::1"), answers.append)
    (answer,) = answers
    return None if answer is None else answer.name


def asked(broker: LiveBroker) -> int:
    (door,) = broker.registry.versions("door")
    return len(door.plugin.ASKED)  # type: ignore[attr-defined]


def test_a_wrapper_stands_before_another_plugin_while_it_is_enabled(broker: LiveBroker) -> None:
    broker.write("prefix", PREFIX.replace("AUTHENTICATOR", "Prefixed(plugin, asked) if plugin == 'door' else asked"))
    do(broker.live.enabling("/", "prefix"))
    assert who(broker) == "door:anna"
    do(broker.live.disabling("/", "prefix"))
    assert who(broker) == "anna"


@pytest.mark.parametrize(
    ("authenticator", "reason"), [("1 / 0", "ZeroDivisionError"), ("None", "which has no authenticate()")]
)
def test_a_wrapper_that_fails_is_not_enabled(broker: LiveBroker, authenticator: str, reason: str) -> None:
    broker.write("prefix", PREFIX.replace("AUTHENTICATOR", authenticator))
    with pytest.raises(ConfigurationError, match="prefix") as refused:
        do(broker.live.enabling("/", "prefix"))
    assert reason in str(refused.value)
    assert who(broker) == "anna"


def test_the_cache_is_empty_after_each_change_of_a_plugin(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "auth-cache", {"plugins": ["door"]}))
    assert [who(broker), who(broker), asked(broker)] == ["anna", "anna", 1]
    do(broker.live.enabling("/", "log-exchange"))
    assert [who(broker), asked(broker)] == ["anna", 2]


def test_a_plugin_that_the_cache_names_cannot_be_disabled(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "auth-cache", {"plugins": ["door"]}))
    with pytest.raises(ConfigurationError, match="plugins: 'door' is not an access plugin"):
        do(broker.live.disabling("/", "door"))
    assert who(broker) == "anna"


@pytest.mark.parametrize("name", ["auth-internal", "log-exchange", "nothing"])
def test_the_cache_names_access_plugins_only(broker: LiveBroker, name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"plugins: '{name}' is not an access plugin .*; there is door"):
        do(broker.live.enabling("/", "auth-cache", {"plugins": [name]}))


def test_forgetting_empties_the_cache(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "auth-cache", {"plugins": ["door"]}))
    who(broker)
    broker.access.access_of("/").forget()
    assert [who(broker), asked(broker)] == ["anna", 2]
