"""One AMQP connection that a follower passes to the leader, and to the next leader when that one is lost.

Both directions are cut into frames. The client gets a delivery as a whole, so that no part of one is left when the
leader is lost. A connection whose frames are not understood is passed on as it comes, and ends with the leader.
"""

from collections.abc import Callable
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Final, cast

from pamqp import commands

from gateway.kernel.errors import ProtocolViolation
from gateway.net.forwarding.relayed_bytes import RelayedBytes
from gateway.net.forwarding.routing import ClientRoute
from gateway_amqp.content import FRAME_END, METHOD, read_frame_head
from gateway_amqp.errors import reply_text
from gateway_amqp.incoming import IncomingBytes
from gateway_amqp.methods import decode_method, encode_method
from gateway_amqp.resuming import indexes
from gateway_amqp.resuming.held_frames import HeldFrames
from gateway_amqp.resuming.login import RelayedLogin
from gateway_amqp.resuming.relay_stage import RelayStage
from gateway_amqp.resuming.relayed_channels import RelayedChannels
from gateway_amqp.resuming.restoration import Restoration
from gateway_amqp.tuning import ACCEPTED_HEADERS, FRAME_MIN

#: So many bytes of unconfirmed publishes are kept; then the client is not read until the leader confirms some.
MOST_KEPT: Final = 4 * 2**20

#: So much of a delivery is held back until it is whole, in bytes. A connection does not survive the loss of the leader
#: in the middle of a larger one.
MOST_HELD_BACK: Final = 2 * 2**20

#: A leader that is lost so often during a login has refused it: clients without a certain capability get no reason.
MOST_LOGINS: Final = 2

HEARTBEAT: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

_FORCED: Final = 320

#: Why a client is blocked: while it is held, and by a leader.
_HELD: Final = "no node of the cluster leads"
_BLOCKS: Final = "the leader blocks publishers"

#: The end of a leader that stops or hands over, as its node announces it to all clients.
_LEADER_STOPS: Final = reply_text(_FORCED, "broker forced connection closure with reason 'shutdown'")
_LEADER_STOPS_FRAME: Final = encode_method(0, commands.Connection.Close(_FORCED, _LEADER_STOPS, 0, 0))


class RelayedConnection:
    """Owns what is remembered of one connection; see ``Resumable`` for its interface."""

    def __init__(self, most_logins: int = MOST_LOGINS) -> None:
        self.stage = RelayStage.GREETING
        self.has_leader_ended = False
        self.awaits_client = True
        self.route: ClientRoute | None = None
        self.is_rerouted = False
        self._owes_open_ok = False
        self._login = RelayedLogin()
        self._channels = RelayedChannels()
        self._restoration: Restoration | None = None
        self._client = IncomingBytes()
        self._leader = IncomingBytes()
        self.waiting = RelayedBytes()
        self._held_back: list[bytes] = []
        self._is_cut = False
        self._is_closing = False
        self._is_blocked = False
        self._held = HeldFrames()
        self._failed_logins = 0
        self._most_logins = most_logins

    @property
    def is_full(self) -> bool:
        """See ``Resumable``."""
        kept = self._channels.kept.size
        if self.stage is RelayStage.LOGIN and not self._login.is_authenticated:
            return kept + self._client.size > FRAME_MIN
        return kept > MOST_KEPT and self.stage is not RelayStage.PASSING

    @property
    def is_restoring(self) -> bool:
        """See ``Resumable``."""
        return self.stage is RelayStage.RESTORING

    @property
    def is_closing(self) -> bool:
        """See ``Resumable``."""
        return self._is_closing

    @property
    def is_over(self) -> bool:
        """See ``Resumable``."""
        return self.stage is RelayStage.OVER

    @property
    def heartbeat_s(self) -> int:
        """See ``Resumable``."""
        return self._login.heartbeat_s

    @property
    def awaits_answer(self) -> bool:
        """See ``Resumable``."""
        return self._held.have_question

    # From the client

    def receive_from_client(self, data: bytes) -> None:
        """See ``Resumable``."""
        if self.stage is RelayStage.PASSING:
            self.waiting.for_leader.append(data)
        elif self.stage in (RelayStage.HELD, RelayStage.RESTORING):
            self._keep_early(data)
        elif self.stage is not RelayStage.OVER and (whole := self._client.add(data)) is not None:
            start = self._greet(whole) if self.stage is RelayStage.GREETING else 0
            if start is not None:
                self._pass_frames(whole, start, self._client, self.waiting.for_leader, self._from_client)

    def _keep_early(self, data: bytes) -> None:
        """Keep what a client sends while no leader takes it; heartbeats alone are dropped."""
        if not self._client.size and not self.waiting.early:
            if not data.replace(HEARTBEAT, b""):
                return
            self._held.note(data)
        self.waiting.early.append(data)

    def _greet(self, data: bytes) -> int | None:
        if len(data) < 8:
            self._client.keep(data, 0, 8)
            return None
        self.waiting.for_leader.append(data[:8])
        if data[:8] not in ACCEPTED_HEADERS:
            self._stop_following()
            self.waiting.for_leader.append(data[8:])
            return None
        self._login.header = data[:8]
        self.stage = RelayStage.LOGIN
        return 8

    def _from_client(self, kind: int, number: int, data: bytes, start: int, stop: int) -> bytes | None:
        if number:
            return self._channels.from_client(kind, number, data, start, stop, self.waiting.for_client)
        if kind == METHOD:
            index = data[start + 7 : start + 11]
            if index == indexes.CLOSE:
                self._is_closing = True
            elif index == indexes.UPDATE_SECRET:
                self._login.ask(data[start + 7 : stop - 1])
            else:
                self._login.note(index, data[start + 7 : stop - 1])
                if index == indexes.OPEN and self._is_elsewhere():
                    return b""
        return None

    def _is_elsewhere(self) -> bool:
        """Whether another leader has the virtual host: the login is repeated there, and the client sees one answer."""
        if self.stage is not RelayStage.LOGIN or self._login.is_served(self.route):
            return False
        self.is_rerouted = self._owes_open_ok = True
        self.stage = RelayStage.HELD
        return True

    # From the leader

    def receive_from_leader(self, data: bytes) -> None:
        """See ``Resumable``."""
        if self.stage in (RelayStage.PASSING, RelayStage.GREETING):
            self.waiting.for_client.append(data)
        elif self.stage not in (RelayStage.HELD, RelayStage.OVER) and (whole := self._leader.add(data)) is not None:
            self._take_from_leader(self._restore(whole) if self.stage is RelayStage.RESTORING else whole)

    def _take_from_leader(self, data: bytes) -> None:
        # a leader that cannot write any more refuses everything that waits, and says that it stops
        self._channels.ignores_refusals = data.endswith(_LEADER_STOPS_FRAME)
        if self.stage is RelayStage.PASSING:
            self.waiting.for_client.append(data)
        elif self.stage in (RelayStage.LOGIN, RelayStage.OPEN) and not self.has_leader_ended:
            self._pass_frames(data, 0, self._leader, self._held_back, self._from_leader)
            self._release()

    def _release(self) -> None:
        """Pass on what was held back, up to the end of a content, or if it is much."""
        if self._channels.in_content and self.stage is not RelayStage.PASSING:
            if not self._is_cut and sum(map(len, self._held_back)) <= MOST_HELD_BACK:
                return
            self._is_cut = True
        else:
            self._is_cut = False
        self._release_all()

    def _release_all(self) -> None:
        self.waiting.for_client += self._held_back
        self._held_back.clear()

    def _from_leader(self, kind: int, number: int, data: bytes, start: int, stop: int) -> bytes | None:
        if number:
            return self._channels.from_leader(kind, number, data, start, stop)
        return self._control(data[start + 7 : start + 11], data[start + 7 : stop - 1]) if kind == METHOD else None

    def _control(self, index: bytes, payload: bytes) -> bytes | None:
        """Note a method of the leader on channel 0."""
        if index == indexes.OPEN_OK and self._login.is_complete:
            self.stage = RelayStage.OPEN
        elif index == indexes.TUNE:
            self._login.note_limit(payload)
        elif index in (indexes.BLOCKED, indexes.UNBLOCKED):
            self._is_blocked = index == indexes.BLOCKED
        elif index == indexes.UPDATE_SECRET_OK:
            self._login.answered()
        elif index == indexes.CLOSE:
            return self._leader_closes(payload)
        return None

    def _leader_closes(self, payload: bytes) -> bytes | None:
        close = cast(commands.Connection.Close, decode_method(payload))
        is_stopping = close.reply_code == _FORCED and close.reply_text == _LEADER_STOPS
        if is_stopping and self.stage in (RelayStage.OPEN, RelayStage.RESTORING) and not self._is_closing:
            self.has_leader_ended = True
            self.waiting.for_leader.append(encode_method(0, commands.Connection.CloseOk()))
            return b""
        self._stop_following()
        return None

    # Frames

    def _pass_frames(
        self,
        data: bytes,
        start: int,
        incoming: IncomingBytes,
        outgoing: list[bytes],
        note: Callable[[int, int, bytes, int, int], bytes | None],
    ) -> None:
        """Pass whole frames on, or what takes their place; keep the rest until it is whole."""
        position = passed = start
        end = len(data)
        most, channels = self._login.frame_max, self._channels
        wanted = 8
        try:
            while end - position >= 8 and not self.has_leader_ended:
                kind, number, size = read_frame_head(data, position)
                stop = position + 8 + size
                if size > most or (stop <= end and data[stop - 1] != FRAME_END):
                    raise ProtocolViolation("a frame is larger than was agreed, or has no end")
                if stop > end:
                    wanted = size + 8
                    break
                was_in_content = bool(channels.in_content)
                instead = note(kind, number, data, position, stop)
                if not was_in_content and channels.in_content:  # what comes before it is whole
                    outgoing.append(data[passed:position])
                    self._release_all()
                    passed = position
                if instead is not None:
                    outgoing.append(data[passed:position])
                    outgoing.append(instead)
                    passed = stop
                position = stop
                if self.is_rerouted:
                    self.waiting.for_leader.clear()
                    self.waiting.early.append(data[position:])
                    return
                if channels.after:
                    position, channels.after = channels.after, 0
                if self.stage is RelayStage.PASSING:
                    break
        except (ProtocolViolation, StructError, IndexError, UnicodeDecodeError):
            self._stop_following()
        if self.stage is RelayStage.PASSING:
            outgoing.append(data[passed:])
            return
        outgoing.append(data[passed:position])
        incoming.keep(data, position, wanted)

    def _stop_following(self) -> None:
        """Pass everything on as it comes from now on."""
        self.stage = RelayStage.PASSING
        if (rest := self._client.take()) is not None:
            self.waiting.for_leader.append(rest)
        self._release_all()
        if (rest := self._leader.take()) is not None:
            self.waiting.for_client.append(rest)

    # Another leader

    def leader_lost(self) -> bool:
        """See ``Resumable``."""
        self.waiting.for_leader.clear()
        self.has_leader_ended = False
        if self.stage not in (RelayStage.OPEN, RelayStage.RESTORING):
            return False
        if self._is_closing:
            self.waiting.for_client.append(encode_method(0, commands.Connection.CloseOk()))
            self.stage = RelayStage.OVER
        elif self._is_cut or self._channels.is_too_large:
            self.give_up("the leader of the cluster changed, and the connection could not be moved to the next one")
        elif self.stage is RelayStage.RESTORING and self._has_refused_login():
            self.give_up("the next leader of the cluster refused the login")
        if self.is_over:
            return False
        self._held_back.clear()
        self._leader.take()
        self._channels.leader_lost()
        self._restoration = None
        self._held.have_question |= self._channels.await_answers
        self.stage = RelayStage.HELD
        return True

    def _has_refused_login(self) -> bool:
        assert self._restoration is not None
        if not self._restoration.has_logged_in:
            self._failed_logins += 1
        return self._failed_logins >= self._most_logins

    def leader_found(self) -> None:
        """See ``Resumable``."""
        self.stage = RelayStage.RESTORING
        requests, queues = self._channels.needed()
        self._restoration = Restoration(self._login, requests, queues)
        self.waiting.for_leader.append(self._restoration.take())

    def _restore(self, data: bytes) -> bytes:
        """Handle the frames of a new leader; return those after the last one that was due."""
        restoration = self._restoration
        assert restoration is not None
        position, end = 0, len(data)
        while end - position >= 8 and not restoration.is_over and self._is_being_restored:
            kind, _, size = read_frame_head(data, position)
            stop = position + 8 + size
            if stop > end:
                break
            payload = data[position + 7 : stop - 1]
            position = stop
            try:
                if kind == METHOD and payload[:4] == indexes.CLOSE:
                    if self._leader_closes(payload) is None:  # the client learns why
                        self.waiting.for_client.append(data[position - size - 8 : position])
                    continue
                restoration.frame(kind, payload)
            except (ProtocolViolation, StructError, IndexError, UnicodeDecodeError):
                self.give_up("the next leader of the cluster could not continue the connection")
                return b""
            self.waiting.for_leader.append(restoration.take())
        if restoration.is_over:
            self._go_on(restoration)
        elif self._is_being_restored:
            self._leader.keep(data, position, 8)
        return data[position:]

    @property
    def _is_being_restored(self) -> bool:
        return self.stage is RelayStage.RESTORING and not self.has_leader_ended

    def _go_on(self, restoration: Restoration) -> None:
        """Continue where the former leader ended: first what the client knows already, then what it waits for."""
        self.stage = RelayStage.OPEN
        self._restoration = None
        self._failed_logins = 0
        if self._owes_open_ok:
            self._owes_open_ok = False
            self.waiting.for_client.append(encode_method(0, commands.Connection.OpenOk()))
        if self._is_blocked and not restoration.is_blocked and self._can_be_told:
            self.waiting.for_client.append(encode_method(0, commands.Connection.Unblocked()))
        elif restoration.is_blocked and not self._is_blocked and self._can_be_told:
            self.waiting.for_client.append(encode_method(0, commands.Connection.Blocked(_BLOCKS)))
        self._is_blocked = restoration.is_blocked
        self._held = HeldFrames()
        self.waiting.for_leader.append(self._login.unanswered)
        self._channels.begin_again(
            restoration.failures, self.waiting.for_leader, self.waiting.for_client, self._login.capabilities
        )
        if early := self.waiting.take_early():
            self.receive_from_client(early)

    def give_up(self, reason: str) -> None:
        """See ``Resumable``."""
        if self.stage in (RelayStage.OPEN, RelayStage.HELD, RelayStage.RESTORING):
            close = commands.Connection.Close(_FORCED, reply_text(_FORCED, reason), 0, 0)
            self.waiting.for_client.append(encode_method(0, close))
        self.stage = RelayStage.OVER
        self.waiting.for_leader.clear()

    def tell_held(self) -> None:
        """See ``Resumable``. A client that only consumes is not blocked, as with an alarm."""
        publishes = self._held.have_publish or self._channels.have_published
        if self.stage is RelayStage.HELD and publishes and not self._is_blocked:
            self._is_blocked = True
            if self._can_be_told:
                self.waiting.for_client.append(encode_method(0, commands.Connection.Blocked(_HELD)))

    @property
    def _can_be_told(self) -> bool:
        return "connection.blocked" in self._login.capabilities

    def beat(self) -> None:
        """See ``Resumable``."""
        if self.stage in (RelayStage.HELD, RelayStage.RESTORING):
            self.waiting.for_client.append(HEARTBEAT)
        elif self.stage is RelayStage.OPEN and self.is_full:
            self.waiting.for_leader.append(HEARTBEAT)
