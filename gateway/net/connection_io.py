"""The hot half of a connection at the edge: from the socket to its machine, and from its outbox to the socket.

What happens once a connection, or a few times a second, is with ``PeerProtocol``. This half derives from nothing of
Twisted's, so that compiled it is a struct, and a small packet in or out finds what it needs without a dictionary.
"""

from typing import Any, Final, Protocol

from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.kernel.journal.journal import Journal
from gateway.net.machine import GONE, Machine
from gateway.net.outbox import FLOOD, Outbox
from gateway.net.socket_writer import NO_DESCRIPTOR, SocketWriter
from gateway.net.syscalls import receive
from gateway.net.turn import Speaker, Turn

_receive: Final = receive

#: Bytes of input that count as a unit of work, as a power of two.
_BYTES_A_UNIT: Final = 7


class Clockwork(Protocol):
    """What a line asks of the other half; ``name`` is what listings call the connection."""

    name: str

    def fail(self) -> None:
        """End the connection: something of ours broke; called while the exception is being handled."""
        ...

    def weigh_reading(self) -> None:
        """Decide anew whether the peer is read from."""
        ...


class _Stopped:
    """The other half of a connection that is over."""

    name = "that is over"

    def fail(self) -> None:
        """End no more."""

    def weigh_reading(self) -> None:
        """Read nothing anyway."""


_STOPPED: Final = _Stopped()


class ConnectionIO(Speaker):
    """One connection's way in and out.

    ``is_reading`` says that the peer is read from, ``is_ending`` that the connection ends behind what is in the outbox;
    ``heard`` and ``spoke`` that something came and went since somebody last looked. ``octets`` and ``reads`` count what
    came. ``has_leftover`` says that input waits for its share of a later turn; nothing is read before that is done.
    ``was_held`` says that there was some since it was last looked at.
    """

    __slots__ = (
        "_clockwork",
        "_descriptor",
        "_is_awaiting_disk",
        "_is_in_rotation",
        "_is_source_read",
        "_journal",
        "_turn",
        "has_leftover",
        "heard",
        "is_ending",
        "is_reading",
        "machine",
        "octets",
        "outbox",
        "reads",
        "spoke",
        "was_held",
        "wire",
    )

    def __init__(self, clockwork: Clockwork, journal: Journal, turn: Turn) -> None:
        self.machine: Machine = GONE
        self.outbox: Outbox = GONE.outbox
        self.wire: SocketWriter | None = None
        self.is_reading = True
        self.is_ending = False
        self.heard = True
        self.spoke = True
        self.octets = 0
        self.reads = 0
        self._clockwork = clockwork
        self._journal = journal
        self._turn = turn
        self._is_awaiting_disk = False
        self._is_in_rotation = False
        self._is_source_read = True
        self.has_leftover = False
        self.was_held = False
        self._descriptor = NO_DESCRIPTOR

    def connect(self, machine: Machine) -> None:
        """Serve this machine."""
        self.machine = machine
        self.outbox = machine.outbox

    def cut(self) -> None:
        """Serve nobody any more, and know nobody, so that no cycle is left of the connection."""
        if self.wire is not None:
            self.wire.forget()
            self.wire = None
        self._clockwork = _STOPPED
        self.stop_listening()
        self.connect(GONE)

    @property
    def who(self) -> str:
        """What listings call the connection."""
        return self._clockwork.name

    # In

    def listen(self, descriptor: int) -> None:
        """Read by itself, from a non-blocking socket, until told to stop: the descriptor will be another's."""
        self._descriptor = descriptor

    def stop_listening(self) -> None:
        """Read nothing any more."""
        self._descriptor = NO_DESCRIPTOR

    def read(self) -> Any:
        """Read once; return why the connection is over, as Twisted has it, or ``None``."""
        if not self.is_reading or self.has_leftover or self._descriptor == NO_DESCRIPTOR:
            return None  # so it is since it was found to be ready
        try:
            data = _receive(self._descriptor)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        if len(data) == 0:
            return CONNECTION_DONE
        self.take(data)
        return None

    def take(self, data: bytes) -> None:
        """Let the machine have what came."""
        self.heard = True
        self.octets += len(data)
        self.reads += 1
        self._turn.budget.work += len(data) >> _BYTES_A_UNIT
        try:
            self.machine.receive(data)
        except Exception:  # the seam to one peer: what breaks while serving it is told to it, and ends with it
            self._clockwork.fail()
        if self.machine.is_held and not self.has_leftover:
            self._hold()
        if not self._turn.is_scheduled and self._journal.has_begun:  # who wants to speak sees to it by itself
            self._turn.touch()

    def _hold(self) -> None:
        """Leave the rest of the input to later turns."""
        self.has_leftover = self.was_held = True
        self._read_source()
        if self.is_reading and not self.machine.is_busy:
            self._wait_for_share()

    def _wait_for_share(self) -> None:
        if not self._is_in_rotation:
            self._is_in_rotation = True
            self._turn.hold(self)

    def go_on(self) -> bool:
        """Give the machine its share of this turn; return whether it wants another one."""
        machine = self.machine
        if machine.is_held and self.is_reading:
            machine.receive(b"")
        self.has_leftover = machine.is_held
        self._is_in_rotation = self.has_leftover and self.is_reading and not machine.is_busy
        if not self.has_leftover:
            self._read_source()
        return self._is_in_rotation

    def resume(self) -> None:
        """Serve the machine again: it is done with a request that took several turns."""
        if self.has_leftover and self.is_reading:
            self._wait_for_share()

    def admit(self, is_reading: bool) -> None:
        """Read from the peer and act on its input, or let both wait."""
        if is_reading != self.is_reading:
            self.is_reading = is_reading
            self._read_source()
            if is_reading and self.has_leftover and not self.machine.is_busy:
                self._wait_for_share()

    def _read_source(self) -> None:
        """Tell the transport whether to read. A socket of our own is not asked while there is input left over."""
        is_wanted = self.is_reading and not (self.has_leftover and self._descriptor == NO_DESCRIPTOR)
        if is_wanted != self._is_source_read and self.wire is not None:
            self._is_source_read = is_wanted
            self.wire.read(is_wanted)

    # Out

    def wake(self) -> None:
        """Take part in the end of this turn; the outbox makes sure to ask once."""
        self._turn.schedule_flush(self)

    def defer_confirms(self) -> None:
        """Be asked for confirms at the end of this turn."""
        self._turn.defer_confirms(self)

    def end_turn(self) -> None:
        """Let confirms that are due into the outbox."""
        self.machine.end_turn()

    def flush(self) -> None:
        """Send everything that may leave now."""
        outbox, wire = self.outbox, self.wire
        outbox.is_awake = False
        if wire is None:
            return
        if not outbox.is_congested:
            pieces, size = outbox.take(self._journal.watermark)
            if pieces:
                self.spoke = True
                wire.send(pieces, size)
            if outbox.pieces and outbox.awaited:
                self._wait_for_disk()
            elif self.is_ending and not outbox.pieces:
                self.is_ending = False
                wire.close()
        if not outbox.is_open and outbox.weigh():
            self.machine.resume()
        if outbox.size > FLOOD or not self.is_reading:
            self._clockwork.weigh_reading()

    def fail(self) -> None:
        """End the connection: something of ours broke while serving it."""
        self._clockwork.fail()

    def congested(self, is_congested: bool) -> None:
        """Hear from the wire whether the peer keeps up."""
        outbox = self.outbox
        outbox.is_congested = is_congested
        outbox.is_open = outbox.is_open and not is_congested  # opening is for ``flush``, which tells the consumers
        outbox.wake()

    def _wait_for_disk(self) -> None:
        """Come back when what the next frame promises is durable."""
        if not self._is_awaiting_disk:
            self._is_awaiting_disk = True
            self._journal.when_durable(max(self.outbox.awaited, self._journal.pending_lsn), self._disk_caught_up)

    def _disk_caught_up(self) -> None:
        self._is_awaiting_disk = False
        self.outbox.wake()
