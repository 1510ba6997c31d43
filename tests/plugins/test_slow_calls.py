"""A slow call of a plugin is named as the cause of a long turn: object, method, plugin and virtual host."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.access import Credentials, Principal
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.testing import header_of
from tests.plugins.live import LiveBroker, do

PLUGIN = """
from gateway.api import Permissions, Principal, QueueFeature, QueueFeatureType, QueueSetting, hookimpl
wait = None

class Slow:
    all_vhosts = False
    def published(self, message, queues, origin):
        wait()
    delivered = published
    def on_event(self, event):
        if event.name == "queue.created":
            wait()
    def metrics(self):
        wait()
        return []
    def authenticate(self, credentials, answer):
        wait()
        answer(Principal("anna"))
    def permissions(self, principal, vhost):
        wait()
        return Permissions("anna", vhost, "", "", "")

class Feature(QueueFeature):
    def on_enqueue(self, message):
        wait()

def slow_feature(queue):
    return Feature()

@hookimpl
def {hook}():
    feature = QueueFeatureType({{"mine-slow": QueueSetting(lambda value: None)}}, slow_feature)
    return [feature if "{hook}" == "gateway_queue_features" else Slow()]
"""


def publish(broker: LiveBroker) -> None:
    broker.kernel.trace("/", True)
    exchange = broker.vhost.default_exchange
    broker.vhost.publish(exchange, Message("", "q", header_of(), b""), Origin("here", 1, "guest", "amqp091"))


def declare(broker: LiveBroker) -> None:
    broker.vhost.declare_queue("q")


def enqueue(broker: LiveBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-mine-slow": 1})
    broker.vhost.publish(broker.vhost.default_exchange, Message("", queue.name, header_of(), b""))


def log_in(broker: LiveBroker) -> None:
    broker.access.access_of("/").authenticate(Credentials("PLAIN", "anna", "x"), lambda principal: None)


def enter(broker: LiveBroker) -> None:
    broker.access.access_of("/").enter(Principal("anna"), "/")


def scrape(broker: LiveBroker) -> None:
    list(broker.kernel.plugins_in_use.metrics.read())


@pytest.mark.parametrize(
    ("hook", "act", "cause", "kind"),
    [
        ("gateway_tracers", publish, "published() of the tracer Slow", "tracer"),
        (
            "gateway_event_listeners",
            declare,
            "the event listener Slow for the event queue.created",
            "plugin event listener",
        ),
        ("gateway_metrics", scrape, "the metric source Slow", "plugin metrics"),
        ("gateway_authenticators", log_in, "the authenticator Slow", "authenticator"),
        ("gateway_authorizers", enter, "the authorizer Slow", "authorizer"),
        ("gateway_queue_features", enqueue, "the queue feature Feature of 'q'", "queue feature"),
    ],
)
@pytest.mark.parametrize("seconds", [0.006, 2 * CALL_LIMIT_S])
def test_a_slow_call_is_named(
    tmp_path: Path, hook: str, act: Callable[[LiveBroker], None], cause: str, kind: str, seconds: float
) -> None:
    broker = LiveBroker(tmp_path)
    broker.write("mine", PLUGIN.format(hook=hook))
    do(broker.live.enabling("/", "mine"))
    plugin = broker.registry.versions("mine")[-1].plugin
    plugin.wait = lambda: broker.clock.advance(seconds)  # type: ignore[attr-defined]
    named: list[tuple[str, float]] = []
    broker.kernel.journal.budget.on_slow = lambda *slow: named.append(slow)
    act(broker)
    measured = [time for _, _, time in broker.live.times("/") if time.longest_s > 0.001]
    assert [time.total_s for time in measured] == [pytest.approx(seconds)]
    assert named == [(f"{cause}, plugin 'mine', vhost '/'", pytest.approx(seconds))]
    faults: list[Event] = [event for event in broker.events if event.name == "fault.contained"]
    assert [event.details["kind"] for event in faults] == ([kind] if seconds > CALL_LIMIT_S else [])
    assert all("mine.py:" in str(event.details["place"]) for event in faults)
