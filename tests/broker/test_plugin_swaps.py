"""A plugin is enabled, replaced, rolled back and disabled under the load of all protocols; no message goes astray.

Its exchange type and its interceptor change together: the queue of each message and the header that the interceptor
wrote name the same version.
"""

from itertools import groupby
from pathlib import Path
from typing import Any, Final

from tests.broker.conftest import Connect
from tests.broker.numbered_publishers import AmqpPublisher, MqttPublisher, NumberedPublisher, StompPublisher
from tests.broker.test_plugin_changes import ctl, state
from tests.management_client import get, put
from tests.running import Gateway
from tests.waiting import wait_until

#: Messages that each publisher sends between two changes, at least.
BETWEEN: Final = 20

#: The alternate exchange of the plugin's exchange, and its queue: where messages go while the plugin is disabled.
WITHOUT: Final = "without"

SOURCE = """
from gateway.api import Interceptor, hookimpl

class Versioned:
    def __init__(self, arguments):
        self.bindings = []
    def bind(self, binding):
        self.bindings.append(binding)
    def unbind(self, binding):
        self.bindings.remove(binding)
    def route(self, message):
        return [binding.destination for binding in self.bindings if binding.routing_key == "VERSION"]

class Stamp(Interceptor):
    def on_publish(self, message, origin):
        return message.edited({"version": "VERSION"})

@hookimpl
def gateway_exchange_types():
    return {"x-versioned": Versioned}

@hookimpl
def gateway_interceptors():
    return [Stamp()]
"""


def _declare(channel: Any) -> None:
    """Declare the exchange of the plugin, which gets all messages of ``amq.topic``, and one queue for each version."""
    channel.exchange_declare(WITHOUT, "fanout", durable=True)
    channel.exchange_declare("versioned", "x-versioned", durable=True, arguments={"alternate-exchange": WITHOUT})
    channel.exchange_bind("versioned", "amq.topic", "#")
    channel.queue_declare(WITHOUT, durable=True)
    channel.queue_bind(WITHOUT, WITHOUT, "")
    for version in ("v1", "v2"):
        channel.queue_declare(version, durable=True)
        channel.queue_bind(version, "versioned", version)


def _versions(channel: Any) -> dict[str, dict[int, list[str]]]:
    """Return the queues of each message, by publisher and number. The header and the queue of each must agree."""
    found: dict[str, dict[int, list[str]]] = {}
    for queue in (WITHOUT, "v1", "v2"):
        count = channel.queue_declare(queue, passive=True).method.message_count
        for method, properties, body in channel.consume(queue, auto_ack=True) if count else ():
            assert (properties.headers or {}).get("version", WITHOUT) == queue
            found.setdefault(method.routing_key, {}).setdefault(int(body), []).append(queue)
            count -= 1
            if not count:
                break
        channel.cancel()
    return found


def _check(publisher: NumberedPublisher, queues_by_number: dict[int, list[str]], phases: list[str]) -> None:
    """Check that each confirmed message is in one queue, and that each change has one boundary."""
    assert publisher.faults == [], publisher.name
    assert sorted(queues_by_number) == list(range(publisher.sent)), publisher.name
    assert all(len(queues) == 1 for queues in queues_by_number.values()), publisher.name
    order = [queues_by_number[number][0] for number in range(publisher.sent)]
    assert [version for version, _ in groupby(order)] == phases, publisher.name


def _bindings(gateway: Gateway) -> Any:
    return get(gateway, "exchanges/%2F/versioned/bindings/source")


def _identity(gateway: Gateway, vhost: str) -> Any:
    """Return what a change of a plugin would change in the listings of a virtual host."""
    rows = [get(gateway, f"plugins/{vhost}/{row['name']}") for row in get(gateway, f"plugins/{vhost}")]
    return [{key: value for key, value in row.items() if key not in ("times", "longest_ms")} for row in rows]


def test_a_plugin_changes_under_load_in_all_protocols(gateway: Gateway, connect: Connect, tmp_path: Path) -> None:
    source = tmp_path / "plugins" / "versioned.py"
    source.parent.mkdir()
    source.write_text(SOURCE.replace("VERSION", "v1"))
    gateway.start(f"plugins_dir={source.parent}")
    put(gateway, "vhosts/other", {})
    put(gateway, "permissions/other/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    for vhost in ("/", "other"):
        ctl(gateway, "enable", "versioned", "-p", vhost)
        _declare(connect(virtual_host=vhost).channel())
    ctl(gateway, "disable", "versioned")
    assert get(gateway, "exchanges/%2F/versioned")["inert"]
    bindings, other = _bindings(gateway), _identity(gateway, "other")

    elsewhere = AmqpPublisher(gateway, "elsewhere", "versioned", "other")
    publishers: list[NumberedPublisher] = [
        AmqpPublisher(gateway, "amqp", "amq.topic"),
        MqttPublisher(gateway, "mqtt1", 1),
        MqttPublisher(gateway, "mqtt2", 2),
        StompPublisher(gateway, "stomp", "/exchange/amq.topic/stomp"),
        elsewhere,
    ]
    for each in publishers:
        each.start()
    _wait_for_more(publishers)
    ctl(gateway, "enable", "versioned")
    direct = AmqpPublisher(gateway, "direct", "versioned")
    publishers.append(direct)
    direct.start()
    _wait_for_more(publishers)
    source.write_text(SOURCE.replace("VERSION", "v2"))
    ctl(gateway, "reload", "versioned")
    assert state(gateway, "versioned")["version"] == state(gateway, "versioned", "other")["version"] + 1
    _wait_for_more(publishers)
    ctl(gateway, "rollback", "versioned")
    _wait_for_more(publishers)
    direct.stop()
    ctl(gateway, "disable", "versioned")
    _wait_for_more([each for each in publishers if each is not direct])
    for each in publishers:
        if each is not direct:
            each.stop()

    assert (_bindings(gateway), _identity(gateway, "other")) == (bindings, other)
    versions = _versions(connect().channel())
    assert sorted(versions) == sorted(each.name for each in publishers if each is not elsewhere)
    for each in publishers:
        if each is not elsewhere:
            used = ["v1", "v2", "v1"]
            _check(each, versions[each.name], used if each is direct else [WITHOUT, *used, WITHOUT])
    _check(elsewhere, _versions(connect(virtual_host="other").channel())["elsewhere"], ["v1"])


def _wait_for_more(publishers: list[NumberedPublisher]) -> None:
    """Wait until each publisher has had more messages confirmed."""
    before = {each: each.sent for each in publishers}
    wait_until(
        lambda: all(each.sent >= before[each] + BETWEEN or each.faults for each in publishers),
        lambda: f"publishers stopped: {[(each.name, each.sent, each.faults) for each in publishers]}",
    )
