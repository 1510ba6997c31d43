"""Clients whose connections a node passes to one broker in memory after the other: they outlive a crash."""

from typing import Any, Final

from gateway_mqtt.resuming.relayed_session import RelayedSession
from tests.protocols.mqtt.client_model import ClientModel, Link
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.frame_reader import FrameReader, ReceivedPacket
from tests.protocols.mqtt.message_records import Inbox
from tests.protocols.mqtt.packets import WRITERS, session_expiry
from tests.protocols.mqtt.test_mqtt_machine import MachineLink, MachineWorld
from tests.protocols.mqtt.world import REJOIN_S

#: The sizes of the pieces in which bytes come, one after the other: packets are cut anywhere.
_PIECES: Final = (1, 7, 2, 50, 3, 1000)


class LeaderEnd(MachineLink):
    """The connection of a node to one broker."""

    def __init__(self, gateway: Gateway, version: int, link: "RelayedLink", *, is_resumed: bool = False) -> None:
        super().__init__(gateway, version)
        self.is_resumed = is_resumed
        self.link = link

    def take(self, data: bytes) -> None:
        self.link.from_leader(self, data)

    def take_end(self) -> None:
        """A broker that closes the connection ends it for the client, if it is still this one."""


class RelayedLink:
    """A client's connection to the node: a ``Link`` whose bytes pass through a ``RelayedSession``."""

    def __init__(self, gateway: Gateway, version: int) -> None:
        self.write = WRITERS[version]
        self.session = RelayedSession()
        self._version = version
        self._reader = FrameReader(version)
        self._received: list[ReceivedPacket] = []
        self._pieces = 0
        self._leader = LeaderEnd(gateway, version, self)

    # For the client

    def connect(self, client_id: str, *, expiry: int | None = None, **options: Any) -> list[str]:
        """See ``Link``."""
        options["properties"] = options.get("properties", b"") + (b"" if expiry is None else session_expiry(expiry))
        self.send(self.write.connect(client_id, **options))
        self._leader.gateway.settle()
        first, *rest = self._taken()
        return [first.line, *map(str, rest)]

    def send(self, *packets: bytes) -> None:
        """See ``Link``."""
        for piece in self._cut(b"".join(packets)):
            self.session.receive_from_client(piece)
            self._flush()

    def request(self, *packets: bytes) -> list[str]:
        """See ``Link``."""
        self.send(*packets)
        self._leader.gateway.settle()
        return list(map(str, self._taken()))

    def receive_now(self) -> list[str]:
        """See ``Link``."""
        self._leader.gateway.end_turn()
        return list(map(str, self._taken()))

    def close(self) -> None:
        """See ``Link``."""
        self._leader.close()

    # For the broker

    def from_leader(self, leader: LeaderEnd, data: bytes) -> None:
        """Take bytes of a broker."""
        if leader is self._leader:
            for piece in self._cut(data):
                self.session.receive_from_leader(piece)
                self._flush()

    def resume(self, gateway: Gateway) -> bool:
        """Go on with another broker; return whether that was possible."""
        self.session.receive_from_leader(b"\x30")  # the beginning of a packet that never comes whole
        if not self.session.leader_lost():
            return False
        self._leader = LeaderEnd(gateway, self._version, self, is_resumed=True)
        self.session.leader_found()
        self._flush()
        gateway.settle()
        return not self.session.is_over and not self.session.is_restoring

    def _flush(self) -> None:
        if data := self.session.waiting.take_for_leader():
            self._leader.send(data)
        self._received += self._reader.feed(self.session.waiting.take_for_client())

    def _cut(self, data: bytes) -> list[bytes]:
        pieces = []
        while data:
            size = _PIECES[self._pieces % len(_PIECES)]
            self._pieces += 1
            pieces.append(data[:size])
            data = data[size:]
        return pieces

    def _taken(self) -> list[ReceivedPacket]:
        taken, self._received = self._received, []
        return taken


class StayingClient(ClientModel):
    """A client that does not learn of a crash. It acknowledges each delivery that it gets."""

    def resumed(self) -> None:
        """The broker was replaced under the connection."""
        self.connection += 1
        self.open_ids = set()
        if not self.expiry_s:
            self.inbox = Inbox()
            for group in self.world.groups.values():
                if self.name in group.members:
                    group.left_by(self.name)
                    group.members.add(self.name)
        for sent, state in self.outgoing.values():
            if state == "sent":
                sent.sends += 1
                takers = self.world.takers(sent)
                sent.taken_by = sent.taken_by & takers if sent.qos == 2 else takers

    def _plan(self, verb: str, packet_id: int) -> None:
        self.todo.append((verb, packet_id))


class RelayedWorld(MachineWorld):
    """The same clients and brokers, with a node between them."""

    def __init__(self) -> None:
        super().__init__()
        self.people: list[ClientModel] = [StayingClient(self, person.name) for person in self.people]
        self.resumed = 0

    def new_client(self, version: int) -> Link:
        return RelayedLink(self.gateway, version)

    def crash(self) -> None:
        """Crash the broker without its uncommitted data, and let the connections go on with the next one."""
        self.absorb()
        self.gateway = self.gateway.crashed()
        self.gateway.advance(0)
        self.life += 1
        gone = [person for person in self.people if not self._resume(person)]
        for person in gone:
            person.crashed()
        for group in self.groups.values():  # those whose last member is gone, too
            group.lingers_until_s = self.now_s + REJOIN_S
        self.absorb()

    def _resume(self, person: ClientModel) -> bool:
        assert isinstance(person, StayingClient)
        link = person.link
        if not isinstance(link, RelayedLink) or not link.resume(self.gateway):
            return False
        person.resumed()
        self.resumed += 1
        return True
