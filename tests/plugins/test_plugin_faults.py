"""A plugin that fails repeatedly is switched off in its virtual host, unless it decides on access."""

from pathlib import Path

import pytest

from gateway.node.plugin_faults import PluginFaults
from tests.plugins.live import LiveBroker, do, first_bound

LIMIT = 3


class Failing(Exception):
    """An error of a plugin."""


@pytest.fixture
def broker(tmp_path: Path) -> LiveBroker:
    source = first_bound(2).replace("return [binding", "raise RuntimeError('lost') or [binding")
    (tmp_path / "mine.py").write_text(source)
    broker = LiveBroker(tmp_path)
    broker.faults = PluginFaults(broker.live, LIMIT)
    broker.kernel.events.subscribe(broker.faults)
    for vhost in ("/", "other"):
        do(broker.live.enabling(vhost, "mine"))
        broker.bind_two(vhost)
    return broker


def publish(broker: LiveBroker, times: int, vhost: str = "/") -> None:
    for _ in range(times):
        assert broker.reached(vhost) == []


def test_it_is_switched_off_after_the_limit_with_an_event(broker: LiveBroker) -> None:
    publish(broker, LIMIT)
    broker.clock.advance(1)
    assert broker.plugin_events()[-1] == "plugin.switched_off mine"
    assert "3 faults within 60 s, the last: RuntimeError: lost" in str(broker.events[-1].details)
    assert "mine" not in broker.live.enabled("/")
    assert broker.vhost.exchange("e").inert_reason
    assert len(broker.vhost.bindings.of(broker.vhost.exchange("e"))) == 2


def test_other_virtual_hosts_keep_the_plugin(broker: LiveBroker) -> None:
    publish(broker, LIMIT)
    publish(broker, LIMIT - 1, "other")
    broker.clock.advance(1)
    assert "mine" in broker.live.enabled("other")
    assert broker.faults.count == {("/", "mine"): LIMIT, ("other", "mine"): LIMIT - 1}


def test_faults_further_apart_do_not_count_together(broker: LiveBroker) -> None:
    for _ in range(3 * LIMIT):
        publish(broker, 1)
        broker.clock.advance(31)
    assert "mine" in broker.live.enabled("/")
    assert broker.faults.count["/", "mine"] == 3 * LIMIT


def test_it_stays_off_after_a_restart_until_it_is_enabled(broker: LiveBroker) -> None:
    publish(broker, LIMIT)
    broker.clock.advance(1)
    restarted = broker.restarted()
    assert "mine" not in restarted.live.enabled("/")
    do(restarted.live.enabling("/", "mine"))
    assert "mine" in restarted.live.enabled("/")


def test_without_a_limit_it_is_never_switched_off(broker: LiveBroker) -> None:
    faults = PluginFaults(broker.live, 0)
    for _ in range(2):
        broker.kernel.events.subscribe(faults)
    publish(broker, LIMIT - 1)
    broker.clock.advance(1)
    assert faults.count["/", "mine"] == 2 * (LIMIT - 1)
    assert "mine" in broker.live.enabled("/")


def test_a_plugin_that_decides_on_access_stays_enabled_and_is_reported(
    broker: LiveBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(LIMIT):
        broker.kernel.faults.contain("authorizer", Failing(), vhost="/", plugin="auth-internal")
    broker.clock.advance(1)
    assert broker.plugin_events()[-1] == "plugin.faulty auth-internal"
    assert "auth-internal" in broker.live.enabled("/")
    assert "plugin fails repeatedly" in caplog.text


def test_faults_of_a_deleted_virtual_host_are_forgotten(broker: LiveBroker) -> None:
    publish(broker, LIMIT, "other")
    broker.kernel.delete_vhost("other")
    broker.clock.advance(5)
    assert ("other", "mine") not in broker.faults.count
