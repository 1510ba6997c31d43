"""The frames of a client until its connection was open, which are sent again to another leader.

The secret of the client is in memory only: nothing here is logged or shown.
"""

from typing import Final, cast

from pamqp import commands

from gateway.net.forwarding.routing import ClientRoute
from gateway_amqp.methods import bytes_of, decode_method, encode_method, table_of
from gateway_amqp.resuming.indexes import OPEN, START_OK, TUNE_OK
from gateway_amqp.tables import decode_fields, encode_table
from gateway_amqp.tuning import FRAME_MIN, capabilities

#: The longest frame of a client that leaves the limit to the broker, in bytes.
FRAME_MAX: Final = 131_072


class RelayedLogin:
    """The handshake of one client. ``header`` is its protocol header, ``heartbeat_s`` what it agreed to; 0 for none.

    ``frame_max`` is the longest frame: before the credentials, the one that the broker takes then.
    ``is_authenticated``: the leader has taken the credentials. ``vhost`` is the virtual host that the client names.
    """

    def __init__(self) -> None:
        self.header = b""
        self.heartbeat_s = 0
        self.frame_max = FRAME_MIN
        self.is_authenticated = False
        self.vhost = ""
        self.capabilities: frozenset[str] = frozenset()
        self._start_ok: commands.Connection.StartOk | None = None
        self._tune_ok = b""
        self._open = b""
        self._new_secret: commands.Connection.UpdateSecret | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all of it is known."""
        return self._start_ok is not None and bool(self._tune_ok) and bool(self._open)

    def is_served(self, route: ClientRoute | None) -> bool:
        """Whether the present leader has the virtual host of the client."""
        return route is None or not self.is_complete or route.leads_to(self.vhost)

    def note(self, index: bytes, payload: bytes) -> None:
        """Note a method of the client on channel 0. :raises ProtocolViolation: if it cannot be decoded."""
        if index == START_OK:
            self._start_ok = cast(commands.Connection.StartOk, decode_method(payload))
            self.frame_max = FRAME_MAX
            self.capabilities = capabilities(table_of(self._start_ok.client_properties))
        elif index == TUNE_OK:
            tune_ok = cast(commands.Connection.TuneOk, decode_method(payload))
            self.heartbeat_s = tune_ok.heartbeat
            self.frame_max = tune_ok.frame_max or self.frame_max
            self._tune_ok = encode_method(0, tune_ok)
        elif index == OPEN:
            opened = cast(commands.Connection.Open, decode_method(payload))
            self.vhost = opened.virtual_host
            self._open = encode_method(0, opened)

    def note_limit(self, payload: bytes) -> None:
        """Note the limit of a frame that the leader offers to a client that it knows now.

        :raises ProtocolViolation: if it cannot be decoded.
        """
        tune = cast(commands.Connection.Tune, decode_method(payload))
        self.frame_max = tune.frame_max or self.frame_max
        self.is_authenticated = True

    # Sent again

    @property
    def start_ok(self) -> bytes:
        """The frame with the credentials. A new secret counts from its request on: the former one may have expired."""
        assert self._start_ok is not None
        return encode_method(0, self._start_ok)

    @property
    def limits_and_vhost(self) -> bytes:
        """The frames that follow when the leader has accepted the credentials."""
        return self._tune_ok + self._open

    # New secrets

    def ask(self, payload: bytes) -> None:
        """Note the request for a new secret. :raises ProtocolViolation: if it cannot be decoded."""
        self._new_secret = cast(commands.Connection.UpdateSecret, decode_method(payload))
        secret = bytes_of(self._new_secret.new_secret)
        start_ok = self._start_ok
        if start_ok is None:
            return
        response = bytes_of(start_ok.response)
        if start_ok.mechanism == "PLAIN" and response.count(b"\0") >= 2:
            identity, user, _ = response.split(b"\0", 2)
            start_ok.response = _as_text(b"\0".join((identity, user, secret)))
        elif start_ok.mechanism == "AMQPLAIN":
            start_ok.response = _as_text(_with_password(response, secret))

    def answered(self) -> None:
        """Note the answer to it."""
        self._new_secret = None

    @property
    def unanswered(self) -> bytes:
        """The request for a new secret that was not answered; empty if there is none."""
        return b"" if self._new_secret is None else encode_method(0, self._new_secret)


def _with_password(response: bytes, secret: bytes) -> bytes:
    """Return the fields of an AMQPLAIN response, which is a table without its length, with another password."""
    fields = {**decode_fields(response), "PASSWORD": secret.decode(errors="replace")}
    return encode_table(fields)[4:]


def _as_text(response: bytes) -> str:
    return response.decode("utf-8", "surrogateescape")
