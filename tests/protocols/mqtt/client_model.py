"""A model of several clients: their state, their sessions, and the messages they must receive.

``ClientModel`` is one client over all its connections: it keeps the state that MQTT requires of clients during a
session, resends unacknowledged packets, and checks every packet it receives.
"""

from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from tests.protocols.mqtt.message_records import Arrival, Inbox, Sent
from tests.protocols.mqtt.packets import Writer, receive_maximum

if TYPE_CHECKING:
    from tests.protocols.mqtt.world import World

#: The Session Expiry Interval of MQTT 5.0 clients, in seconds; sessions of 3.x last as long as the server allows.
EXPIRY_S: Final = 60


class Link(Protocol):
    """A connection, in process or over a network. ``write`` encodes packets; received packets are lines."""

    write: Writer

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:  # Any: Writer.connect
        """Send CONNECT; return the CONNACK, without its properties, and the packets right after it."""
        ...

    def send(self, *packets: bytes) -> object:
        """Send packets in one write, without waiting."""
        ...

    def request(self, *packets: bytes) -> list[str]:
        """Send a packet; return what is received, including its answer."""
        ...

    def receive_now(self) -> list[str]:
        """Return what was received since the last call."""
        ...

    def close(self) -> None:
        """Close the transport without DISCONNECT."""
        ...


class ClientModel:
    """One client. ``link`` is its connection; ``inbox`` holds its session's messages, ``None`` without a session."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.link: Link | None = None
        self.connection = 0
        self.window = 0
        self.expiry_s = 0
        self.ends_at_s = 0
        self.inbox: Inbox | None = None
        self.numbers = count(1)
        self._forget()

    def _forget(self) -> None:
        """Reset to a client without a session and without unfinished messages."""
        self.subscriptions: dict[str, int] = {}
        self.outgoing: dict[int, tuple[Sent, str]] = {}
        self.holding: dict[int, str] = {}
        self.latest: dict[tuple[str, str, int], int] = {}
        self.todo: list[tuple[str, int]] = []
        self.open_ids: set[int] = set()

    # Connections

    def connect(self, version: int, is_clean: bool, lasts: bool, window: int) -> None:
        """Connect, replacing an existing connection, and resend what was not acknowledged."""
        if self.link is not None:
            self._end_of_connection()
        had_session = self.inbox is not None
        self.window = window if version == 5 else self.world.prefetch
        self.expiry_s = (EXPIRY_S if version == 5 else 86_400) if lasts else 0
        if version < 5:
            is_clean = not lasts
        self.link = self.world.new_client(version)
        properties = receive_maximum(window) if version == 5 else b""
        expiry = self.expiry_s if version == 5 and lasts else None
        packets = self.link.connect(self.name, is_clean=is_clean, properties=properties, expiry=expiry)
        is_present = had_session and not is_clean
        assert packets[0] == ("CONNACK present" if is_present else "CONNACK")
        if not is_present:
            self._end_of_session()
            self._forget()
            self.inbox = Inbox()
        self.connection += 1
        self.todo, self.open_ids = [], set()
        self.receive(packets[1:])
        self._send_again()

    def _send_again(self) -> None:
        """Resend unacknowledged packets (MQTT-4.4.0-1, client side)."""
        for packet_id, (sent, state) in self.outgoing.items():
            if state == "sent":
                self._publish(sent, packet_id)
            else:
                self.send_verb("pubrel", packet_id)

    def lose(self) -> None:
        """Lose the transport."""
        assert self.link is not None
        self.link.close()
        self._end_of_connection()

    def leave(self) -> None:
        """Send DISCONNECT and close."""
        assert self.link is not None
        self.link.send(self.link.write.disconnect())
        self.lose()

    def _end_of_connection(self) -> None:
        self.link = None
        self.ends_at_s = self.world.now_s + self.expiry_s
        if not self.expiry_s:
            self._end_of_session()

    def _end_of_session(self) -> None:
        self.inbox = None
        for group in self.world.groups.values():
            group.left_by(self.name)

    def crashed(self) -> None:
        """Handle a crash of the broker: the connection is lost, and a session that ends with it."""
        if self.link is not None:
            self._end_of_connection()

    def grow_older(self) -> None:
        """Expire the session if its time is over."""
        if self.link is None and self.inbox is not None and self.ends_at_s <= self.world.now_s:
            self._end_of_session()

    # Actions

    def subscribe(self, filter: str, qos: int) -> None:
        assert self.link is not None
        packets = self.link.request(self.link.write.subscribe((filter, qos), id=1))
        answer = f"SUBACK #1 {qos}"
        assert answer in packets
        if filter in self.world.groups:
            self.world.groups[filter].members.add(self.name)
        else:
            self.subscriptions[filter] = qos
        self.receive([line for line in packets if line != answer])

    def unsubscribe(self, filter: str) -> None:
        assert self.link is not None
        packets = self.link.request(self.link.write.unsubscribe(filter, id=2))
        self.receive([line for line in packets if not line.startswith("UNSUBACK #2")])
        self.subscriptions.pop(filter, None)
        if filter in self.world.groups:
            self.world.groups[filter].left_by(self.name)

    def publish(self, topic: str, qos: int) -> None:
        number = next(self.numbers)
        sent = Sent(f"{self.name}-{number}", self.name, number, topic, qos)
        self.world.sent[sent.body] = sent
        packet_id = next(free for free in count(1) if free not in self.outgoing) if qos else 0
        if qos:
            self.outgoing[packet_id] = (sent, "sent")
        self._publish(sent, packet_id)

    def _publish(self, sent: Sent, packet_id: int) -> None:
        assert self.link is not None
        sent.sends += 1
        takers = self.world.takers(sent)
        # a resent QoS 2 message has the receivers of its first or of this sending, because a crash may forget the first
        sent.taken_by = sent.taken_by & takers if sent.qos == 2 and sent.sends > 1 else takers
        is_again = sent.qos > 0 and sent.sends > 1
        body = sent.body.encode()
        self.link.send(self.link.write.publish(sent.topic, body, qos=sent.qos, id=packet_id, dup=is_again))

    def do(self, task: tuple[str, int]) -> None:
        """Send one of the acknowledgements that are due, in any order."""
        self.todo.remove(task)
        verb, packet_id = task
        if verb in ("puback", "pubcomp"):
            self.open_ids.discard(packet_id)
        if verb == "pubrel":
            self.outgoing[packet_id] = (self.outgoing[packet_id][0], "released")
        self.send_verb(verb, packet_id)

    def send_verb(self, verb: str, packet_id: int) -> None:
        assert self.link is not None
        self.link.send(getattr(self.link.write, verb)(packet_id))

    # Received packets

    def receive(self, lines: list[str]) -> None:
        """Check and record each packet."""
        for line in lines:
            verb, *words = line.split(" ")
            if verb == "PUBLISH":
                self._receive_publish(words)
            else:
                assert verb in ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"), f"{self.name} receives {line}"
                self._receive_answer(verb, int(words[0][1:]))

    def _receive_answer(self, verb: str, packet_id: int) -> None:
        if verb == "PUBREL":
            self.holding.pop(packet_id, None)
            self._plan("pubcomp", packet_id)
            return
        sent, state = self.outgoing[packet_id]
        if verb == "PUBACK":
            assert sent.qos == 1
            self._is_safe(sent)
            del self.outgoing[packet_id]
        elif verb == "PUBREC":
            assert sent.qos == 2
            if state == "sent":
                self._is_safe(sent)
                self.outgoing[packet_id] = (sent, "received")
                self._plan("pubrel", packet_id)
        else:
            assert state == "released" or self.connection > 1
            del self.outgoing[packet_id]
            self.todo = [task for task in self.todo if task != ("pubrel", packet_id)]

    def _is_safe(self, sent: Sent) -> None:
        """Record that the broker has accepted the message: all expected receivers must get it."""
        for inbox in sent.taken_by:
            if sent.body not in inbox.arrivals and sent.body not in inbox.lenient:
                inbox.owed.add(sent.body)

    def _receive_publish(self, words: list[str]) -> None:
        *marks, topic, body = words
        body = body.strip("'")
        qos = next((int(mark[1:]) for mark in marks if mark.startswith("q")), 0)
        packet_id = next((int(mark[1:]) for mark in marks if mark.startswith("#")), 0)
        sent = self.world.sent[body]
        assert topic == sent.topic
        assert qos <= sent.qos
        if qos:
            assert packet_id not in self.open_ids, "a packet identifier is reused before it is free"
            self.open_ids.add(packet_id)
            assert len(self.open_ids) <= self.window, "more deliveries are unacknowledged than Receive Maximum allows"
            self._plan("puback" if qos == 1 else "pubrec", packet_id)
        if qos == 2:
            if packet_id in self.holding:
                assert self.holding[packet_id] == body, "a packet identifier is used for another message"
                assert "dup" in marks
                return
            self.holding[packet_id] = body
        self._arrived(sent, qos, "dup" in marks)

    def _arrived(self, sent: Sent, qos: int, is_dup: bool) -> None:
        """Check a message that is passed to the application."""
        group = self.world.group_of(sent.topic)
        inbox = self.inbox if group is None else group
        assert inbox is not None
        assert sent.body in inbox.expected, f"{self.name} never asked for {sent.topic}"
        earlier = inbox.arrivals.setdefault(sent.body, [])
        if earlier and sent.body not in inbox.lenient:
            self._check_repetition(sent, qos, is_dup, earlier, is_alone=group is None)
        if not earlier and group is None and sent.sends == 1:
            key = (sent.publisher, sent.topic, inbox.expected[sent.body])
            assert self.latest.get(key, 0) < sent.number, f"{sent.body} is delivered out of order"
            self.latest[key] = sent.number
        earlier.append(Arrival(qos, self.connection, self.world.life))
        inbox.owed.discard(sent.body)

    def _check_repetition(self, sent: Sent, qos: int, is_dup: bool, earlier: list[Arrival], is_alone: bool) -> None:
        """QoS 2 never repeats. Others repeat if the publisher resent an unknown message, QoS 0 after a crash, 1 after a
        loss."""
        if qos == 2:
            assert not [arrival for arrival in earlier if arrival.qos == 2], f"{sent.body} comes twice"
        elif sent.sends > 1 and (sent.qos == 1 or earlier[-1].life < self.world.life):
            return
        if qos == 0:
            assert earlier[-1].life < self.world.life, f"{sent.body} comes twice with QoS 0"
        if qos == 1 and is_alone:
            assert earlier[-1].connection < self.connection, f"{sent.body} is delivered twice on one connection"
            assert is_dup

    def _plan(self, verb: str, packet_id: int) -> None:
        if (verb, packet_id) not in self.todo:
            self.todo.append((verb, packet_id))
