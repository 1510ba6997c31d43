"""The hot path of a connection: from the socket to its machine, and from its outbox to the socket.

Work that is done once per connection, or a few times a second, is in ``PeerProtocol``. This class does not derive from
Twisted's classes: compiled, it is a struct, so that no dictionary lookups are needed for a small packet.
"""

from typing import Any, Final, Protocol

from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST

from gateway.kernel.budget import PendingWork
from gateway.kernel.journal.journal import Journal
from gateway.net.machine import CLOSED_MACHINE, Machine
from gateway.net.outbox import FLOOD, Outbox
from gateway.net.socket_writer import NO_DESCRIPTOR, SocketWriter
from gateway.net.syscalls import receive
from gateway.net.turn import Turn, TurnParticipant

_receive: Final = receive

#: The bytes of a read at first, and at most. Reads of large messages grow: with 512 KiB a message of 64 KiB takes 28 to
#: 44 µs in all, with 64 KiB it takes 50 to 80, because each call of the system has costs of its own, and what is read
#: at once is sent at once. Reads of small messages do not: they would be more work at once, and others wait for it.
FIRST_READ: Final = 64 * 1024
LARGEST_READ: Final = 512 * 1024

#: The least size of a large message, or of a frame of one.
LARGE: Final = 8 * 1024

#: Bytes of input that count as one unit of work, as a power of two.
_BYTES_A_UNIT: Final = 7

#: Output below this size in bytes may wait for more; a larger write hardly costs less per byte.
_LITTLE: Final = 16 * 1024


class ConnectionOwner(Protocol):
    """The other half of the connection, as ``ConnectionIO`` uses it. ``name`` is the connection's name in listings."""

    name: str

    def fail(self) -> None:
        """End the connection after an internal error. Called while the exception is being handled."""
        ...

    def update_reading(self) -> None:
        """Decide again whether to read from the peer."""
        ...

    def wake(self) -> None:
        """Tick again: the connection receives, sends or is held back."""
        ...


class _ClosedOwner:
    """The owner of a connection that is closed (null object)."""

    name = "that is over"

    def fail(self) -> None:
        """Do nothing: the connection is closed."""

    def update_reading(self) -> None:
        """Do nothing: the connection is closed."""

    def wake(self) -> None:
        """Do nothing: the connection is closed."""


_CLOSED_OWNER: Final = _ClosedOwner()


class ConnectionIO(TurnParticipant):
    """Input and output of one connection.

    ``is_reading``: the peer is read from. ``is_ending``: the connection closes after the outbox is sent.
    ``has_received`` and ``has_sent``: bytes were received, and sent, since the flag was last reset. ``octets`` and
    ``reads`` count the input. ``has_leftover``: received input waits for a later turn; nothing is read until it is
    handled. ``is_resting``: the connection does not tick (``Ticking``). ``was_held``: there was such input since the
    flag was last reset. ``_is_pending``: the input waits for a request whose work continues in later turns; ``_unread``
    is the part that the machine has not received.
    """

    __slots__ = (
        "_acting",
        "_descriptor",
        "_is_awaiting_disk",
        "_is_in_rotation",
        "_is_pending",
        "_is_source_read",
        "_journal",
        "_owner",
        "_read_size",
        "_turn",
        "_unread",
        "has_leftover",
        "has_received",
        "has_sent",
        "is_ending",
        "is_reading",
        "is_resting",
        "machine",
        "octets",
        "outbox",
        "reads",
        "was_held",
        "writer",
    )

    def __init__(self, owner: ConnectionOwner, journal: Journal, turn: Turn) -> None:
        self.machine: Machine = CLOSED_MACHINE
        self.outbox: Outbox = CLOSED_MACHINE.outbox
        self.writer: SocketWriter | None = None
        self.is_reading = True
        self.is_ending = False
        self.is_resting = False
        self.has_received = True
        self.has_sent = True
        self.octets = 0
        self.reads = 0
        self._acting = journal.clock.background.acting
        self._owner = owner
        self._journal = journal
        self._turn = turn
        self._is_awaiting_disk = False
        self._is_in_rotation = False
        self._is_pending = False
        self._is_source_read = True
        self._unread = b""
        self._read_size = FIRST_READ
        self.has_leftover = False
        self.was_held = False
        self._descriptor = NO_DESCRIPTOR

    def connect(self, machine: Machine) -> None:
        """Connect the machine that handles the input."""
        self.machine = machine
        self.outbox = machine.outbox

    def detach(self) -> None:
        """Drop all references to the other parts, so that the closed connection leaves no reference cycle."""
        if self.writer is not None:
            self.writer.forget()
            self.writer = None
        self._owner = _CLOSED_OWNER
        self.stop_listening()
        self.connect(CLOSED_MACHINE)

    @property
    def connection_name(self) -> str:
        """Return the connection's name in listings."""
        return self._owner.name

    def took(self, seconds: float) -> None:
        """Report that handling its input took this long; this is called for long times only."""
        self._turn.budget.took(seconds)

    # In

    def listen(self, descriptor: int) -> None:
        """Read directly from a non-blocking socket, until ``stop_listening``; then its number may be reused."""
        self._descriptor = descriptor

    def stop_listening(self) -> None:
        """Stop reading from the socket."""
        self._descriptor = NO_DESCRIPTOR

    def read(self) -> Any:
        """Read once. Return Twisted's reason when the connection is over, otherwise ``None``."""
        if not self.is_reading or self.has_leftover or self._descriptor == NO_DESCRIPTOR:
            return None  # reading stopped after the socket was reported as ready
        size = self._read_size
        try:
            data = _receive(self._descriptor, size)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        if len(data) == 0:
            return CONNECTION_DONE
        self.take(data)
        if len(data) == size or size > FIRST_READ:
            self._adapt_read_size(len(data))
        return None

    def _adapt_read_size(self, received: int) -> None:
        """Read more at once while messages are large and handled in the turn of their read, and less otherwise."""
        size = self._read_size
        if self.has_leftover:
            self._read_size = FIRST_READ
        elif received == size and self.machine.awaited >= LARGE:
            self._read_size = min(2 * size, LARGEST_READ)
        elif received == size or received < size // 2:
            self._read_size = max(size // 2, FIRST_READ)

    def take(self, data: bytes) -> None:
        """Pass received bytes to the machine."""
        self.has_received = True
        if self.is_resting:
            self._owner.wake()
        self.octets += len(data)
        self.reads += 1
        turn, acting = self._turn, self._acting
        budget = turn.budget
        budget.work += len(data) >> _BYTES_A_UNIT
        if self._is_pending:
            self._unread += data  # the transport had read it before reading stopped
            return
        outputs_before = turn.output_count
        acting.source = machine = self.machine
        try:
            machine.receive(data)
        except Exception:  # an error while serving one peer ends that connection only
            self._owner.fail()
        acting.source = None
        if budget.pending is not None:
            self._wait_for_pending_work()
        if machine.is_held and not self.has_leftover and self.machine is machine:
            self._hold()
            if self._is_in_rotation:
                turn.gather_since(outputs_before)
        if not turn.is_scheduled and self._journal.has_begun:  # output schedules the turn itself
            turn.touch()

    def _hold(self) -> None:
        """Leave the rest of the input to later turns."""
        self.has_leftover = self.was_held = True
        self._read_source()
        if self.is_reading and not self._is_busy:
            self._wait_for_share()

    @property
    def _is_busy(self) -> bool:
        """Whether the rest of the input waits for a request that is not finished."""
        return self._is_pending or self.machine.is_busy

    def _wait_for_pending_work(self) -> None:
        """Keep the rest of the input until the pending work of the last request is done."""
        work = self._turn.budget.take_pending()
        if work is not None:
            self._is_pending = True
            work.when_over(self._pending_work_done)
            if not self.has_leftover:
                self._hold()

    def _pending_work_done(self, work: PendingWork) -> None:
        self._is_pending = False
        self.resume()

    def _wait_for_share(self) -> None:
        if not self._is_in_rotation:
            self._is_in_rotation = True
            self._turn.hold(self)

    def go_on(self) -> bool:
        """Let the machine use its share of this turn; return whether it needs another one."""
        machine = self.machine
        if (machine.is_held or self._unread) and self.is_reading:
            unread, self._unread = self._unread, b""
            self._acting.source = machine
            try:
                machine.receive(unread)
            finally:
                self._acting.source = None
            self._wait_for_pending_work()
        self.has_leftover = machine.is_held or self._is_pending
        self._is_in_rotation = self.has_leftover and self.is_reading and not self._is_busy
        if not self.has_leftover:
            self._read_source()
        return self._is_in_rotation

    def resume(self) -> None:
        """Continue with the input after a request that took several turns."""
        if self.machine.is_held and not self.has_leftover:  # it was held outside of ``take``, after a late login
            self._hold()
        elif self.has_leftover and self.is_reading:
            self._wait_for_share()

    def set_reading(self, is_reading: bool) -> None:
        """Start or stop reading from the peer and handling its input."""
        if is_reading != self.is_reading:
            if self.is_resting:
                self._owner.wake()
            self.is_reading = is_reading
            self._read_source()
            if is_reading and self.has_leftover and not self._is_busy:
                self._wait_for_share()

    def _read_source(self) -> None:
        """Start or stop reading in the transport. A directly read socket is left alone while input is left over."""
        is_wanted = self.is_reading and not (self.has_leftover and self._descriptor == NO_DESCRIPTOR)
        if is_wanted != self._is_source_read and self.writer is not None:
            self._is_source_read = is_wanted
            self.writer.read(is_wanted)

    # Out

    def wake(self) -> None:
        """Schedule a flush at the end of this turn. The outbox calls this once per turn."""
        self._turn.schedule_flush(self)

    def can_gather(self) -> bool:
        """Whether the waiting output is little, so that it may wait for more."""
        outbox = self.outbox
        return outbox.size < _LITTLE and outbox.is_open and not self.is_ending

    def flush(self) -> None:
        """Send the output that may be sent now."""
        outbox, writer = self.outbox, self.writer
        outbox.is_awake = False
        if writer is None:
            return
        if not outbox.is_congested:
            pieces, size = outbox.take(self._journal.watermark)
            if pieces:
                self.has_sent = True
                if self.is_resting:
                    self._owner.wake()
                writer.send(pieces, size)
            if outbox.pieces and outbox.awaited_lsn:
                self._wait_for_disk()
            elif self.is_ending and not outbox.pieces:
                self.is_ending = False
                writer.close()
        if not outbox.is_open and outbox.update_is_open():
            self.machine.resume()
        if outbox.size > FLOOD or not self.is_reading:
            self._owner.update_reading()

    def fail(self) -> None:
        """End the connection after an internal error."""
        self._owner.fail()

    def congested(self, is_congested: bool) -> None:
        """Stop deliveries while the transport's buffer is full; called by the socket writer."""
        outbox = self.outbox
        outbox.is_congested = is_congested
        outbox.is_open = outbox.is_open and not is_congested  # only ``flush`` opens it: it resumes the consumers
        outbox.wake()

    def _wait_for_disk(self) -> None:
        """Schedule a flush for when the store is durable up to the next frame's log position."""
        if not self._is_awaiting_disk:
            self._is_awaiting_disk = True
            self._journal.when_durable(max(self.outbox.awaited_lsn, self._journal.pending_lsn), self._disk_caught_up)

    def _disk_caught_up(self) -> None:
        self._is_awaiting_disk = False
        self.outbox.wake()
