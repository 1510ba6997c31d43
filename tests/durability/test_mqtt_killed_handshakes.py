"""Kills in each state of QoS 1 and 2 handshakes: no message is lost, and none of QoS 2 is duplicated.

A client that sends a packet right before the kill cannot know whether it arrived, and continues as the specification
requires. Five clients do so in sequence, so that the kill interrupts each in another state.
"""

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.durability.mqtt_link import FOR_AN_HOUR, SocketLink
from tests.running import Gateway

CLIENTS: Final = {f"client-{number}": version for number, version in enumerate((5, 4, 5, 4, 5))}

Open = Callable[..., SocketLink]


@pytest.fixture
def connect(gateway: Gateway) -> Iterator[Open]:
    """Open connections with durable or temporary sessions; ``is_present`` is the expected session-present flag."""
    links: list[SocketLink] = []

    def opened(name: str, version: int = 5, *, is_present: bool, lasts: bool = True) -> SocketLink:
        link = SocketLink(gateway.addresses["mqtt"], version)
        links.append(link)
        link.send(link.write.connect(name, is_clean=not lasts, properties=FOR_AN_HOUR if lasts else b""))
        assert link.receive_connack() == ("CONNACK present" if is_present else "CONNACK")
        return link

    yield opened
    for link in links:
        link.close()


class Reader:
    """A client that receives with QoS 2. ``holding`` are identifiers that are not released yet."""

    def __init__(self, link: SocketLink, holding: dict[int, str] | None = None) -> None:
        self.link = link
        self.holding = holding or {}
        self.bodies: list[str] = []

    def read(self, count: int) -> "Reader":
        """Receive exactly this number of messages, each with its whole handshake."""
        while len(self.bodies) < count or self.holding:
            self.take(self.link.receive_one())
        assert self.link.receive_answers() == []
        assert len(self.bodies) == count
        return self

    def take(self, line: str) -> None:
        words = line.split()
        if words[0] == "PUBREL":
            packet_id = int(words[1][1:])
            self.holding.pop(packet_id, None)
            self.link.send(self.link.write.pubcomp(packet_id))
            return
        assert words[:2] == ["PUBLISH", "q2"]
        packet_id, body = int(words[2][1:]), words[-1].strip("'")
        if packet_id in self.holding:
            assert self.holding[packet_id] == body, "an identifier was reused for another message"
            assert "dup" in words
        else:
            self.holding[packet_id] = body
            self.bodies.append(body)
        self.link.send(self.link.write.pubrec(packet_id))


def subscribe(link: SocketLink, filter: str, qos: int) -> None:
    """Subscribe; after the answer the session is durable."""
    assert link.request(link.write.subscribe((filter, qos))) == [f"SUBACK #1 {qos}"]


def publish(connect: Open, topics: dict[str, str], qos: int) -> None:
    """Publish a message to each topic, and wait until it is durable."""
    link = connect("publisher", is_present=False, lasts=False)
    for packet_id, (topic, body) in enumerate(topics.items(), 1):
        link.send(link.write.publish(topic, body.encode(), qos=qos, id=packet_id))
        assert link.receive_one() == f"{'PUBACK' if qos == 1 else 'PUBREC'} #{packet_id}"
        if qos == 2:
            link.send(link.write.pubrel(packet_id))
            assert link.receive_one() == f"PUBCOMP #{packet_id}"
    link.close()


# ---- From the client -------------------------------------------------------------------------------------------------


def test_acknowledged_qos_1_publishes_survive(gateway: Gateway, connect: Open) -> None:
    gateway.start()
    subscribe(app := connect("app", is_present=False), "t/#", 1)
    app.close()
    sensors = {name: connect(name, version, is_present=False) for name, version in CLIENTS.items()}
    for name, sensor in sensors.items():
        sensor.send(*(sensor.write.publish(f"t/{name}", b"%d" % number, qos=1, id=number) for number in range(1, 40)))
        sensor.receive_one()
    gateway.kill()
    required = {name: 1 + len(sensor.receive_to_end()) for name, sensor in sensors.items()}
    gateway.start()
    app = connect("app", is_present=True)
    found: dict[str, list[int]] = {name: [] for name in CLIENTS}
    for line in app.receive_answers(acknowledging=True):
        *_, topic, body = line.split()
        found[topic.removeprefix("t/")].append(int(body.strip("'")))
    for name, numbers in found.items():
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= required[name]


@pytest.mark.parametrize("state", ["PUBLISH sent", "PUBREC received", "PUBREL sent", "PUBCOMP received"])
def test_a_qos_2_publish_resumes_after_a_kill(gateway: Gateway, connect: Open, state: str) -> None:
    gateway.start()
    subscribe(app := connect("app", is_present=False), "t/#", 2)
    app.close()
    sensors = {name: connect(name, version, is_present=False) for name, version in CLIENTS.items()}
    for sensor in sensors.values():
        subscribe(sensor, "nothing", 0)
    for name, sensor in sensors.items():
        sensor.send(sensor.write.publish(f"t/{name}", name.encode(), qos=2, id=7))
        if state != "PUBLISH sent":
            assert sensor.receive_one() == "PUBREC #7"
    for sensor in sensors.values():
        if state in ("PUBREL sent", "PUBCOMP received"):
            sensor.send(sensor.write.pubrel(7))
        if state == "PUBCOMP received":
            assert sensor.receive_one() == "PUBCOMP #7"
    gateway.kill()
    last_packets = {name: sensor.receive_to_end() for name, sensor in sensors.items()}
    gateway.start()
    for name, received in last_packets.items():
        sensor = connect(name, CLIENTS[name], is_present=True)
        if state == "PUBLISH sent" and not received:
            sensor.send(sensor.write.publish(f"t/{name}", name.encode(), qos=2, id=7, dup=True))
            assert sensor.receive_one() == "PUBREC #7"
        if state != "PUBCOMP received" and "PUBCOMP #7" not in received:
            sensor.send(sensor.write.pubrel(7))
            assert sensor.receive_one().startswith("PUBCOMP #7")
        # the identifier is free for another message
        sensor.send(sensor.write.publish(f"t/{name}", b"next", qos=2, id=7))
        assert sensor.receive_one() == "PUBREC #7"
    reader = Reader(connect("app", is_present=True)).read(2 * len(CLIENTS))
    assert sorted(reader.bodies) == sorted([*CLIENTS, *["next"] * len(CLIENTS)])


# ---- To the client ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["PUBLISH received", "PUBREC sent", "PUBREL received", "PUBCOMP sent"])
def test_a_qos_2_delivery_resumes_after_a_kill(gateway: Gateway, connect: Open, state: str) -> None:
    gateway.start()
    apps = {name: connect(name, version, is_present=False) for name, version in CLIENTS.items()}
    for name, app in apps.items():
        subscribe(app, f"t/{name}", 2)
    publish(connect, {f"t/{name}": name for name in CLIENTS}, 2)
    for name, app in apps.items():
        assert app.receive_one() == f"PUBLISH q2 #1 t/{name} '{name}'"
    if state in ("PUBREL received", "PUBCOMP sent"):
        for app in apps.values():
            app.send(app.write.pubrec(1))
            assert app.receive_one() == "PUBREL #1"
    for app in apps.values():
        app.send(*{"PUBREC sent": [app.write.pubrec(1)], "PUBCOMP sent": [app.write.pubcomp(1)]}.get(state, []))
    gateway.kill()
    last_packets = {name: app.receive_to_end() for name, app in apps.items()}
    gateway.start()
    for name, received in last_packets.items():
        app = connect(name, CLIENTS[name], is_present=True)
        is_released = state in ("PUBREL received", "PUBCOMP sent") or "PUBREL #1" in received
        first = app.receive_answers()
        if state == "PUBLISH received":
            assert first == [f"PUBLISH q2 #1 dup t/{name} '{name}'"]
        elif state == "PUBREC sent" and not is_released:
            assert first in ([f"PUBLISH q2 #1 dup t/{name} '{name}'"], ["PUBREL #1"])
        elif state == "PUBCOMP sent":
            assert first in ([], ["PUBREL #1"])
        else:
            assert first == ["PUBREL #1"]
        reader = Reader(app, {} if is_released else {1: name})
        for line in first:
            reader.take(line)
        reader.read(0)
        app.close()
    publish(connect, {f"t/{name}": "next" for name in CLIENTS}, 2)
    for name, version in CLIENTS.items():
        assert Reader(connect(name, version, is_present=True)).read(1).bodies == ["next"]


def test_a_qos_1_delivery_is_repeated_until_it_is_acknowledged(gateway: Gateway, connect: Open) -> None:
    gateway.start()
    apps = {name: connect(name, version, is_present=False) for name, version in CLIENTS.items()}
    for name, app in apps.items():
        subscribe(app, f"t/{name}", 1)
    publish(connect, {f"t/{name}": name for name in CLIENTS}, 1)
    for name, app in apps.items():
        assert app.receive_one() == f"PUBLISH q1 #1 t/{name} '{name}'"
    gateway.kill()
    gateway.start()
    for name, version in CLIENTS.items():
        app = connect(name, version, is_present=True)
        assert app.receive_one() == f"PUBLISH q1 #1 dup t/{name} '{name}'"
        app.send(app.write.puback(1))
        app.request(app.write.unsubscribe("what is durable when that is answered"))
    gateway.kill()
    gateway.start()
    for name, version in CLIENTS.items():
        assert connect(name, version, is_present=True).receive_answers() == []


def test_an_undelivered_message_is_delivered_once(gateway: Gateway, connect: Open) -> None:
    gateway.start()
    for name, version in CLIENTS.items():
        app = connect(name, version, is_present=False)
        subscribe(app, f"t/{name}", 2)
        app.close()
    publish(connect, {f"t/{name}": name for name in CLIENTS}, 2)
    gateway.kill()
    gateway.start()
    for name, version in CLIENTS.items():
        assert Reader(connect(name, version, is_present=True)).read(1).bodies == [name]


def test_a_qos_1_message_is_delivered_once_to_a_qos_0_subscriber(gateway: Gateway, connect: Open) -> None:
    gateway.start()
    for name, version in CLIENTS.items():
        app = connect(name, version, is_present=False)
        subscribe(app, f"t/{name}", 0)
        app.close()
    publish(connect, {f"t/{name}": name for name in CLIENTS}, 1)
    gateway.kill()
    gateway.start()
    for name, version in CLIENTS.items():
        assert connect(name, version, is_present=True).receive_one() == f"PUBLISH t/{name} '{name}'"
    gateway.kill()
    gateway.start()
    for name, version in CLIENTS.items():
        assert connect(name, version, is_present=True).receive_answers() == []
