"""Churn leaves no objects: the broker's are counted by class, also those that the garbage collector does not look at.

Objects that have lived for some seconds are frozen (``gateway.node.garbage_collector``), so a reference cycle that each
entity leaves is a leak. The rounds are those of ``make soak``.
"""

import gc
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.soak.broker_under_test import BrokerUnderTest
from benchmarks.soak.churn import CHURN
from benchmarks.soak.ledger import Ledger
from benchmarks.soak.operators import OPERATED, PLUGIN_VHOST, PLUGINS
from benchmarks.soak.traffic import http
from benchmarks.soak.work import Work
from tests.running import Gateway
from tests.waiting import wait_until

#: Counts the objects of the gateway's classes when the policy ``counted-...`` is set.
PLUGIN = '''
"""Counts objects by class."""

import gc
import json
from collections import Counter
from pathlib import Path

from gateway.api import EventListener, hookimpl


class Counting(EventListener):
    def on_event(self, event):
        if event.name == "policy.set" and event.subject.startswith("counted-"):
            gc.unfreeze()  # the others are not listed
            counts = Counter(
                f"{type(each).__module__}.{type(each).__qualname__}"
                for each in gc.get_objects()
                if str(type(each).__module__).startswith("gateway")
            )
            gc.freeze()
            path = Path(__file__).parent / event.subject
            path.with_suffix(".part").write_text(json.dumps(counts))
            path.with_suffix(".part").rename(path)


@hookimpl
def gateway_event_listeners(vhost):
    return [Counting()]
'''

#: Rounds before the first count, which fill caches, and between the two counts.
WARM, ROUNDS = 2, 6

#: Classes of entries of bounded caches: encoded names of messages, headers of MQTT, patterns of policies, and kinds of
#: lines in the log.
CACHED = {
    "gateway.kernel.messages.contents.EnvelopeNames",
    "gateway_mqtt.translation.header.MqttHeader",
    "gateway_mqtt.translation.header.HeaderFields",
    "gateway_mqtt.translation.delivery_view.DeliveryView",
    "gateway.patterns.literals.Equal",
    "gateway.logs.rate_limit._Bucket",
}


@pytest.fixture
def broker(gateway: Gateway, tmp_path: Path) -> BrokerUnderTest:
    directory = tmp_path / "plugins"
    directory.mkdir()
    (directory / "counting.py").write_text(PLUGIN)
    enabled = [f'vhosts."{vhost}".plugins.{plugin}={{}}' for vhost in ("/", PLUGIN_VHOST) for plugin in PLUGINS]
    gateway.start(f"plugins_dir={directory}", 'vhosts."/".plugins.counting={}', *enabled)
    ports = {name: port for name, (_, port) in gateway.addresses.items()}
    return BrokerUnderTest(ports, gateway.child.pid, Ledger())


def counts(broker: BrokerUnderTest, directory: Path, name: str) -> Counter[str]:
    """Return the number of objects of each class."""
    gc.collect()  # closes the connections of clients that were dropped
    wait_until(lambda: broker.api("GET", "connections") == [])
    broker.api("PUT", f"policies/%2F/{name}", {"pattern": "^$", "definition": {"max-length": 1}})
    path = directory / "plugins" / name
    wait_until(path.exists)
    broker.api("DELETE", f"policies/%2F/{name}")
    return Counter(json.loads(path.read_text()))


def churn(works: list[Work], rounds: int) -> None:
    """Run the rounds of each activity in a thread of its own: most of their time they wait."""

    def run(work: Work) -> None:
        for _ in range(rounds):
            work()

    with ThreadPoolExecutor(len(works)) as threads:
        for done in [threads.submit(run, work) for work in works]:
            done.result()


def test_churn_leaves_no_objects(broker: BrokerUnderTest, tmp_path: Path) -> None:
    works = [prepare(broker) for prepare, _ in (*CHURN.values(), *OPERATED.values(), (http, 0))]
    churn(works, WARM)
    before = counts(broker, tmp_path, "counted-before")
    churn(works, ROUNDS)
    after = counts(broker, tmp_path, "counted-after")
    grown = {name: count - before[name] for name, count in after.items() if name not in CACHED}
    assert {name: more for name, more in grown.items() if more >= ROUNDS} == {}
