"""Somebody at the other end of a machine, whatever it speaks: no sockets, no reactor.

It is the machine's driver, a speaker in turns, and one of the broker's connections. A protocol's ``dialogue.py`` adds
what its clients say, and how what they hear is read.
"""

from enum import Enum
from typing import Generic, Protocol, TypeVar, cast

from gateway.access import CertificateSubject
from gateway.kernel.broker import Broker
from gateway.kernel.connections import ChannelFacts
from gateway.net.machine import Machine
from gateway.net.turn import Turn

Heard = TypeVar("Heard")


Spoken = TypeVar("Spoken", bound=Machine)


class Stateful(Protocol):
    """What every machine is besides."""

    @property
    def state(self) -> Enum:
        """Where it stands."""
        ...


class House(Protocol):
    """What it asks of the gateway it is connected to."""

    broker: Broker
    turn: Turn

    def settle(self) -> None:
        """End turns and commit until everything has had its consequences."""
        ...

    def end_turn(self) -> None:
        """End the turn."""
        ...


class OtherEnd(Generic[Spoken, Heard]):
    """One peer. With ``is_reading`` false its way is congested: what is sent to it stays in the outbox.

    A subclass sets ``machine``, then calls ``join``.
    """

    machine: Spoken

    def __init__(
        self, house: House, port: int, host: str = "127.0.0.1", certificate: CertificateSubject | None = None
    ) -> None:
        self.name = f"{host}:{len(house.broker.connections) + 40_000} -> 127.0.0.1:{port}"
        self.peer_host = host
        self.certificate = certificate
        self.log_lines: list[tuple[str, dict[str, object]]] = []
        self.is_reading = True
        self._house = house
        self._heard: list[Heard] = []
        self._has_heard_end = False

    def awaken(self) -> None:
        """Take part in the end of this turn."""
        self._house.turn.awaken(self)

    def join(self, machine: Spoken) -> None:
        """Be one of the broker's connections."""
        self.machine = machine
        self._house.broker.connections.add(self)

    def lose(self) -> None:
        """The transport breaks."""
        self._house.broker.connections.remove(self)
        self.machine.lost()
        self._house.settle()

    # What a subclass adds

    def read(self, data: bytes) -> list[Heard]:
        """Return what these bytes say."""
        raise NotImplementedError

    @property
    def closed(self) -> Heard:
        """What stands for the end of the connection."""
        raise NotImplementedError

    def _taken(self) -> list[Heard]:
        heard, self._heard = self._heard, []
        return heard

    # Driver

    def log(self, event: str, **details: object) -> None:
        self.log_lines.append((event, details))

    def hang_up(self) -> None:
        self.machine.outbox.wake()

    def opened(self) -> None:
        pass

    def publishing(self) -> None:
        self.weigh_publishing()

    # Speaker: what PeerProtocol does in its turns

    def end_turn(self) -> None:
        self.machine.end_turn()

    def flush(self) -> None:
        outbox, journal = self.machine.outbox, self._house.broker.journal
        outbox.is_awake = False
        outbox.is_congested = not self.is_reading
        if self.is_reading:
            self._take(journal.watermark)
        if outbox.awaited:
            journal.when_durable(max(outbox.awaited, journal.pending_lsn), outbox.wake)
        if outbox.weigh():
            self.machine.resume()

    def fail(self) -> None:
        raise AssertionError("something broke at the end of a turn")

    def _take(self, watermark: int) -> None:
        outbox = self.machine.outbox
        pieces, _ = outbox.take(watermark)
        self._heard += self.read(b"".join(pieces))
        if cast(Stateful, self.machine).state.name == "CLOSED" and not outbox.pieces and not self._has_heard_end:
            self._has_heard_end = True
            self._heard.append(self.closed)

    # What the broker asks of any peer

    @property
    def vhost_name(self) -> str:
        return self.machine.vhost.name if self.machine.vhost is not None else ""

    @property
    def user_name(self) -> str:
        return self.machine.user_name

    @property
    def channel_count(self) -> int:
        return 0

    def channels(self) -> list[ChannelFacts]:
        return []

    def force_close(self, reason: str) -> None:
        self.machine.force_close(reason)

    def fail_confirms(self) -> None:
        self.machine.fail_confirms()

    def weigh_publishing(self) -> None:
        pass
