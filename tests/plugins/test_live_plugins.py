"""Plugins are enabled, disabled, reloaded and rolled back in one virtual host of a running broker, durably."""

from pathlib import Path

import pytest

from gateway.access import Credentials, Principal
from gateway.api import ConfigurationError, NotAllowed, PreconditionFailed
from tests.plugins.live import LiveBroker, do, first_bound

TRACERS = """
from gateway.api import hookimpl
LOG = []

class Tracer:
    def published(self, message, queues, origin): pass
    def delivered(self, message, queue, redelivered, origin): pass
    def close(self): LOG.append("closed")

@hookimpl
def gateway_tracers(settings):
    LOG.append("made")
    return [Tracer()]
"""

AUTH = """
from gateway.api import Permissions, Principal, hookimpl

class Door:
    def authenticate(self, credentials, answer):
        answer(Principal(credentials.username))

@hookimpl
def gateway_authenticators():
    return [Door()]
"""

BROKEN = (
    "from gateway.api import hookimpl\n\n@hookimpl\ndef gateway_exchange_types():\n    raise RuntimeError('down')\n"
)


@pytest.fixture
def broker(tmp_path: Path) -> LiveBroker:
    (tmp_path / "mine.py").write_text(first_bound(2))
    return LiveBroker(tmp_path)


def test_a_plugin_is_enabled_in_one_virtual_host(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "mine"))
    broker.bind_two()
    assert broker.reached() == ["a", "b"]
    assert "x-mine" not in broker.other.exchange_types
    assert broker.plugin_events() == ["plugin.enabled mine"]


def test_the_state_survives_a_restart(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "mine"))
    broker.bind_two()
    restarted = broker.restarted()
    assert restarted.reached() == ["a", "b"]
    do(restarted.live.disabling("/", "mine"))
    assert "x-mine" not in restarted.restarted().vhost.exchange_types


def test_a_plugin_of_the_configuration_can_be_disabled_and_enabled(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(first_bound(2))
    broker = LiveBroker(tmp_path, 'vhosts."/".plugins.mine={}')
    do(broker.live.disabling("/", "mine"))
    restarted = broker.restarted()
    assert "x-mine" not in restarted.vhost.exchange_types
    do(restarted.live.enabling("/", "mine"))
    assert restarted.vhost.record.plugins == {}
    assert "x-mine" in restarted.vhost.exchange_types


def test_a_disabled_plugin_leaves_inert_exchanges_that_are_revived(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "mine"))
    broker.bind_two()
    do(broker.live.disabling("/", "mine"))
    assert broker.vhost.exchange("e").inert_reason
    do(broker.live.enabling("/", "mine"))
    assert broker.reached() == ["a", "b"]


def test_enabling_again_with_the_same_settings_is_no_event(broker: LiveBroker) -> None:
    for settings in ({"login_from": "common_name"}, {"login_from": "common_name"}, None, {}, {}):
        do(broker.live.enabling("/", "auth-certificate", settings))
    do(broker.live.enabling("/", "mine"))
    do(broker.live.enabling("/", "mine", {}))
    assert broker.plugin_events() == [
        "plugin.settings_changed auth-certificate",
        "plugin.settings_changed auth-certificate",
        "plugin.enabled mine",
    ]


def test_reloading_creates_the_objects_of_any_plugin_again(broker: LiveBroker, tmp_path: Path) -> None:
    schema = tmp_path / "reading.avsc"
    schema.write_text('"long"')
    rules = [{"exchange": "amq.direct", "schema_file": str(schema)}]
    do(broker.live.enabling("/", "interceptor-avro", {"rules": rules}))
    refuses = "Refusal"
    assert refuses in broker.intercepted(b"\x06abc")
    schema.write_text('"string"')
    do(broker.live.reloading("/", "interceptor-avro"))
    assert refuses not in broker.intercepted(b"\x06abc")
    assert broker.plugin_events()[1:] == ["plugin.reloaded interceptor-avro"]
    schema.write_text("{")
    with pytest.raises(ConfigurationError, match="rule 1: the schema is not JSON"):
        do(broker.live.reloading("/", "interceptor-avro"))
    assert refuses not in broker.intercepted(b"\x06abc")
    do(broker.live.enabling("/", "mine"))
    broker.bind_two()
    do(broker.live.reloading("/", "mine"))
    assert broker.reached() == ["a", "b"]


def test_a_plugin_is_reloaded_and_rolled_back(broker: LiveBroker) -> None:
    for vhost in ("/", "other"):
        do(broker.live.enabling(vhost, "mine"))
        broker.bind_two(vhost)
    broker.write("mine", first_bound(1))
    do(broker.live.reloading("/", "mine"))
    assert (broker.reached(), broker.reached("other")) == (["a"], ["a", "b"])
    do(broker.live.rolling_back("/", "mine"))
    assert broker.reached() == ["a", "b"]
    do(broker.live.rolling_back("/", "mine"))
    assert broker.reached() == ["a"]


def test_another_change_does_not_replace_a_version(broker: LiveBroker) -> None:
    for vhost in ("/", "other"):
        do(broker.live.enabling(vhost, "mine"))
        broker.bind_two(vhost)
    broker.write("mine", first_bound(1))
    do(broker.live.reloading("/", "mine"))
    do(broker.live.enabling("other", "exchange-local-random"))
    assert broker.reached("other") == ["a", "b"]


def test_unused_versions_are_unloaded(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "mine"))
    for n in (3, 4, 5):
        broker.write("mine", first_bound(n))
        do(broker.live.reloading("/", "mine"))
    assert [version.number for version in broker.registry.versions("mine")] == [3, 4]


@pytest.mark.parametrize("source", [BROKEN, "import lost\n", "def (", first_bound(1, "x-other")])
def test_a_broken_new_version_changes_nothing(broker: LiveBroker, source: str) -> None:
    do(broker.live.enabling("/", "mine"))
    broker.bind_two()
    broker.write("mine", source)
    with pytest.raises((ConfigurationError, PreconditionFailed)):
        do(broker.live.reloading("/", "mine"))
    assert broker.reached() == ["a", "b"]
    assert broker.plugin_events() == ["plugin.enabled mine"]


def test_a_file_that_was_added_later_can_be_enabled(broker: LiveBroker) -> None:
    broker.write("later", first_bound(1, "x-later"))
    do(broker.live.enabling("/", "later"))
    assert "x-later" in broker.vhost.exchange_types


@pytest.mark.parametrize(
    ("name", "settings", "reason"),
    [
        ("lost", None, "'lost' was not found;"),
        ("exchange-rtopics", None, r"'exchange-rtopics' was not found \(did you mean 'exchange-rtopic'\?\)"),
        ("mine", {"a": 1}, "has no settings, but was given a"),
        ("auth-certificate", {"login_from": "x"}, "login_from: must be 'common_name' or 'distinguished_name', not 'x'"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused(
    broker: LiveBroker, name: str, settings: dict[str, object] | None, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        do(broker.live.enabling("/", name, settings))  # type: ignore[arg-type]
    assert broker.vhost.record.plugins == {}


def test_a_plugin_with_a_type_of_another_one_is_refused(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "mine"))
    broker.write("again", first_bound(1))
    with pytest.raises(ConfigurationError, match="offered by two plugins"):
        do(broker.live.enabling("/", "again"))


@pytest.mark.parametrize("name", ["exchange-direct", "mine"])
def test_only_enabled_plugins_are_disabled(broker: LiveBroker, name: str) -> None:
    with pytest.raises(PreconditionFailed, match=r"always enabled|is not enabled"):
        do(broker.live.disabling("/", name))


def test_a_built_in_has_no_former_version_after_it_was_reloaded(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "exchange-local-random"))
    do(broker.live.reloading("/", "exchange-local-random"))
    with pytest.raises(PreconditionFailed, match="was not reloaded"):
        do(broker.live.rolling_back("/", "exchange-local-random"))


def test_objects_of_unchanged_plugins_stay_and_those_of_changed_ones_are_closed(broker: LiveBroker) -> None:
    broker.write("tracing", TRACERS)
    do(broker.live.enabling("/", "tracing"))
    log = broker.registry.versions("tracing")[0].plugin.LOG  # type: ignore[attr-defined]
    do(broker.live.enabling("/", "mine"))
    assert log == ["made"]
    do(broker.live.enabling("/", "tracing", {"a": 1}))
    assert log == ["made", "made", "closed"]
    do(broker.live.disabling("/", "tracing"))
    assert log[-2:] == ["closed", "closed"]


def test_authenticators_are_replaced_for_later_logins(broker: LiveBroker) -> None:
    access, answers = broker.access.access_of("/"), []
    credentials = Credentials("PLAIN", "anna", "secret")
    access.authenticate(credentials, answers.append)
    broker.write("door", AUTH)
    do(broker.live.enabling("/", "door"))
    access.authenticate(credentials, answers.append)
    assert answers[-1] == Principal("anna")
    with pytest.raises(NotAllowed):
        access.enter(Principal("anna"), "/")


def test_connections_read_their_permissions_again(broker: LiveBroker) -> None:
    version = broker.vhost.version
    do(broker.live.enabling("/", "mine"))
    assert broker.vhost.version > version
