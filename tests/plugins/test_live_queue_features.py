"""Plugins with queue features are enabled, reloaded, rolled back and disabled while the virtual host runs."""

from pathlib import Path

import pytest

from gateway.api import ConfigurationError, PreconditionFailed, Value
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.testing import header_of
from tests.plugins.live import LiveBroker, do

#: A feature that drops messages beyond the limit times ``factor``, and keeps its count over versions.
LIMIT = """
from gateway.api import DeathReason, QueueFeature, QueueFeatureType, QueueSetting, hookimpl

class Limit(QueueFeature):
    def __init__(self, queue):
        self.count = 0
        self.limit = queue.settings["acme-limit"] * {factor}
    def inherit(self, earlier):
        self.count = earlier.count
    def on_enqueue(self, message):
        self.count += 1
        return DeathReason.MAXLEN if self.count > self.limit else None

@hookimpl
def gateway_queue_features():
    return [QueueFeatureType({{"{name}": QueueSetting(lambda value: {fault})}}, Limit)]
"""

NO_TYPE = """
from gateway.api import hookimpl

@hookimpl
def gateway_queue_features():
    return [object()]
"""


def source(factor: int = 1, fault: str = "None", name: str = "acme-limit") -> str:
    return LIMIT.format(factor=factor, fault=fault, name=name)


@pytest.fixture
def broker(tmp_path: Path) -> LiveBroker:
    (tmp_path / "limit.py").write_text(source())
    return LiveBroker(tmp_path)


def declare(broker: LiveBroker, name: str = "q", limit: int = 2) -> Queue:
    queue = broker.kernel.vhost("/").declare_queue(name, is_durable=True, arguments={"x-acme-limit": limit})
    assert isinstance(queue, Queue)
    return queue


def publish(broker: LiveBroker, count: int, name: str = "q") -> None:
    vhost = broker.kernel.vhost("/")
    for _ in range(count):
        vhost.publish(vhost.default_exchange, Message("", name, header_of(is_persistent=True), b""))


def test_existing_queues_get_and_lose_the_feature(broker: LiveBroker) -> None:
    queue = declare(broker)
    publish(broker, 3)
    do(broker.live.enabling("/", "limit"))
    publish(broker, 3)
    assert len(queue) == 5
    do(broker.live.disabling("/", "limit"))
    publish(broker, 3)
    assert len(queue) == 8
    assert broker.vhost.queue_features.inert_reason(queue) == "argument 'x-acme-limit': no enabled plugin offers it"


def test_another_virtual_host_does_not_know_the_setting(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    assert broker.other.declare_queue("q", arguments={"x-acme-limit": 0}).features == ()


def test_a_new_version_inherits_and_can_be_rolled_back(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    queue = declare(broker)
    publish(broker, 3)
    assert len(queue) == 2
    broker.write("limit", source(factor=2))
    do(broker.live.reloading("/", "limit"))
    publish(broker, 3)
    assert len(queue) == 3  # the count of the former version was 3, and the new limit is 4
    do(broker.live.rolling_back("/", "limit"))
    publish(broker, 1)
    assert len(queue) == 3


def test_a_version_that_refuses_a_setting_in_use_changes_nothing(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    queue = declare(broker)
    broker.write("limit", source(fault="'must be a text'"))
    with pytest.raises(PreconditionFailed, match="queue 'q' in vhost '/': the value of 'acme-limit' must be a text"):
        do(broker.live.reloading("/", "limit"))
    publish(broker, 3)
    assert len(queue) == 2


def test_the_feature_and_the_messages_survive_a_restart(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    declare(broker)
    publish(broker, 1)
    restarted = broker.restarted()
    queue = restarted.kernel.vhost("/").queue("q")
    assert (len(queue), len(queue.features)) == (1, 1)
    publish(restarted, 3)
    assert len(queue) == 3


def test_a_missing_plugin_leaves_queue_and_policy_after_a_restart(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    declare(broker)
    keys: dict[str, Value] = {"acme-limit": 1, "max-length": 2}
    broker.kernel.put_policy(PolicyRecord("/", "p", False, "^q", "queues", 0, keys))
    publish(broker, 1)
    (broker.directory / "limit.py").unlink()
    vhost = broker.restarted().kernel.vhost("/")
    queue = vhost.queue("q")
    assert (len(queue), len(queue.features)) == (1, 1)  # of the key max-length
    assert "no enabled plugin offers it" in vhost.queue_features.inert_reason(queue)
    assert "acme-limit (no enabled plugin" in vhost.policies.fault(next(iter(vhost.policies)))


def test_two_plugins_cannot_offer_the_same_setting(broker: LiveBroker) -> None:
    do(broker.live.enabling("/", "limit"))
    broker.write("second", source())
    with pytest.raises(ConfigurationError, match="queue setting 'acme-limit' is offered by two plugins"):
        do(broker.live.enabling("/", "second"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (source(name="max-length"), "the setting 'max-length' belongs to the broker itself"),
        (NO_TYPE, "not a QueueFeatureType"),
    ],
)
def test_a_plugin_with_invalid_features_is_refused(broker: LiveBroker, text: str, reason: str) -> None:
    broker.write("bad", text)
    with pytest.raises(ConfigurationError, match=reason):
        do(broker.live.enabling("/", "bad"))
    assert "bad" not in broker.live.enabled("/")
