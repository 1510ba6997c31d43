"""From CONNECT to who it is and where it goes; later, through re-authentication (4.12). No I/O, and no waiting either.

A client without an Authentication Method gives user name and password, or is known by its certificate, or is nobody in
particular. With one it goes through a dialogue of several turns. Either way permissions decide in the end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from gateway.access import (
    Access,
    Answer,
    Challenge,
    Failure,
    GuardedDialogue,
    Permissions,
    Principal,
    Success,
    Visitor,
)
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connection_limits import require_room_for_connection
from gateway.kernel.errors import NotAllowed, Refused
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.logs import StructuredLog
from gateway_mqtt.codec.errors import MqttError, protocol_error, shown
from gateway_mqtt.codec.packets import Auth, Connect
from gateway_mqtt.codec.properties import Properties, PropertyId
from gateway_mqtt.codec.reasons import ReasonCode
from gateway_mqtt.handshake.claims import CLIENT_ID, EXTERNAL, PLAIN, USER_NAME, NotCredible, claim
from gateway_mqtt.handshake.places import Arrival, place_of

_log: Final = StructuredLog("mqtt")


@dataclass(frozen=True, slots=True)
class LoginRules:
    """What the operator decided about logging in.

    ``anonymous_user`` is who clients count as that say nothing of themselves; empty refuses them. They come from this
    machine unless ``anonymous_from_network``, and from no web page unless ``anonymous_from_pages``: a page of any
    origin can connect to the machine of who looks at it. ``certificate_login`` lets clients in by certificate alone.
    ``ignores_colons`` leaves user names whole. The answer to a failed login
    waits for ``refusal_delay_s``, so that guessing takes time.
    """

    broker: Broker
    access_of: Callable[[str], Access]
    default_vhost: str = "/"
    anonymous_user: str = "guest"
    anonymous_from_network: bool = False
    anonymous_from_pages: bool = False
    certificate_login: bool = True
    ignores_colons: bool = False
    refusal_delay_s: float = 3.0


@dataclass(frozen=True, slots=True)
class Welcome:
    """The client is this principal, and may enter. ``data`` is the last word of its authentication method."""

    vhost: VirtualHost
    principal: Principal
    permissions: Permissions
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """The client is not let in, and told so after ``delay_s``; ``text`` may be sent, and tells nobody too much."""

    reason: ReasonCode
    text: str
    delay_s: float = 0.0
    data: bytes = b""


Verdict: TypeAlias = Welcome | Challenge | TurnedAway
Hearer: TypeAlias = Callable[[Verdict], None]


class _Stage(Enum):
    """What comes next in a login."""

    JUDGING = auto()
    CHALLENGED = auto()
    WELCOME = auto()
    OVER = auto()


#: Which AUTH a client may send when (4.12, 4.12.1).
_AUTH_AT: Final = {
    _Stage.CHALLENGED: ReasonCode.CONTINUE_AUTHENTICATION,
    _Stage.WELCOME: ReasonCode.RE_AUTHENTICATE,
}


#: What a refusal says to the client: nothing of whether a user or a virtual host exists.
_TEXTS: Final = {
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: "bad user name or password",
    ReasonCode.NOT_AUTHORIZED: "not authorized",
}


class Login:
    """Takes one connection from its CONNECT to a ``Welcome``, and again at each re-authentication."""

    def __init__(self, settings: LoginRules, arrival: Arrival, connect: Connect, client_id: str) -> None:
        """Prepare to judge a CONNECT. ``client_id`` is the client's own or the one assigned to it."""
        parameters = settings.broker.parameters
        self.method: str = connect.properties.get(PropertyId.AUTHENTICATION_METHOD, "")
        self._has_method = PropertyId.AUTHENTICATION_METHOD in connect.properties
        self._settings = settings
        self._arrival = arrival
        self._connect: Connect | None = connect
        self._client_id = client_id
        self._place = place_of(
            connect.username, arrival, parameters, settings.default_vhost, ignores_colons=settings.ignores_colons
        )
        self._stage = _Stage.JUDGING
        self._dialogue: GuardedDialogue | None = None
        self._principal: Principal | None = None

    @property
    def _access(self) -> Access:
        return self._settings.access_of(self._place.vhost)

    def begin(self, answer: Hearer) -> None:
        """Judge the CONNECT, which is forgotten thereby, and call ``answer`` once, now or later."""
        connect, self._connect = self._connect, None
        assert connect is not None
        if self._place.vhost not in self._settings.broker.vhost_by_name:
            self._refuse_place(connect, answer)
        elif self._has_method:
            self._converse(connect.properties, answer)
        else:
            self._authenticate(connect, answer)

    def proceed(self, auth: Auth, answer: Hearer) -> None:
        """Take an AUTH and call ``answer`` once, now or later.

        :raises MqttError: ``PROTOCOL_ERROR`` when it is not the client's turn to send this one, or a method is missing
            in it or in the CONNECT; ``BAD_AUTHENTICATION_METHOD`` when the two are not the same.
        """
        method = auth.properties.get(PropertyId.AUTHENTICATION_METHOD)
        if not self._has_method or method is None:  # MQTT-4.12.0-7; 3.15.2.2.2
            raise protocol_error("AUTH without an Authentication Method")
        if method != self.method:  # MQTT-4.12.0-5, MQTT-4.12.1-1
            raise MqttError(ReasonCode.BAD_AUTHENTICATION_METHOD, "AUTH by another method than CONNECT")
        if auth.reason is not _AUTH_AT.get(self._stage):
            raise protocol_error(f"AUTH {auth.reason.name} out of turn")
        if self._stage is _Stage.WELCOME:
            self._converse(auth.properties, answer)
        else:
            self._step(auth.properties, answer)

    def _refuse_place(self, connect: Connect, answer: Hearer) -> None:
        """Refuse a client of a virtual host that is not there: after the time that a wrong password takes."""
        settings, reason = self._settings, ReasonCode.BAD_USER_NAME_OR_PASSWORD
        why = f"no virtual host '{shown(self._place.vhost)}'"
        is_checked = connect.password is not None and settings.default_vhost in settings.broker.vhost_by_name
        try:
            username, client_id = self._place.username, self._client_id
            claimed = claim(connect, username, client_id, self._arrival, certificate_login=False)
        except NotCredible:
            is_checked = False
        if not is_checked:
            self._refuse(answer, reason, why)
            return
        access = settings.access_of(settings.default_vhost)
        access.authenticate(claimed, lambda known: self._refuse(answer, reason, why))

    # By name, certificate, or nothing

    def _authenticate(self, connect: Connect, answer: Hearer) -> None:
        settings, username = self._settings, self._place.username
        try:
            claimed = claim(
                connect, username, self._client_id, self._arrival, certificate_login=settings.certificate_login
            )
        except NotCredible as reason:
            self._refuse(answer, ReasonCode.BAD_USER_NAME_OR_PASSWORD, str(reason))
            return
        has_name = claimed.mechanism in (PLAIN, USER_NAME)
        wrong = ReasonCode.BAD_USER_NAME_OR_PASSWORD if has_name else ReasonCode.NOT_AUTHORIZED
        if claimed.mechanism == CLIENT_ID:
            self._access.recognise(claimed, lambda known: self._judged(known or self._anonymous(), wrong, answer))
        elif claimed.mechanism == EXTERNAL:
            self._access.authenticate(claimed, lambda known: self._judged(self._expected(known), wrong, answer))
        else:
            self._access.authenticate(claimed, lambda known: self._judged(known, wrong, answer))

    def _anonymous(self) -> Principal | None:
        """Return who an anonymous client counts as; ``None`` where it may not log in."""
        settings, arrival = self._settings, self._arrival
        if not settings.anonymous_user:
            return None
        if arrival.is_from_page and not settings.anonymous_from_pages:
            self._log("anonymous clients cannot log in from a web page")
            return None
        if not settings.anonymous_from_network and not self._access.is_local(arrival.peer_host):
            self._log("anonymous clients can only log in via localhost")
            return None
        return self._access.anonymous(settings.anonymous_user, arrival.peer_host)

    # By a method

    def _converse(self, properties: Properties, answer: Hearer) -> None:
        """Start a dialogue, the first or one more (4.12.1)."""
        visitor = Visitor(self._place.vhost, self._client_id, self._arrival.peer_host, self._arrival.certificate)
        self._dialogue = self._access.converse(self.method, visitor)
        if self._dialogue is None:
            self._end(answer, TurnedAway(ReasonCode.BAD_AUTHENTICATION_METHOD, "no such authentication method"))
        else:
            self._step(properties, answer)

    def _step(self, properties: Properties, answer: Hearer) -> None:
        assert self._dialogue is not None
        self._stage = _Stage.JUDGING
        data = properties.get(PropertyId.AUTHENTICATION_DATA, b"")
        self._dialogue.step(data, lambda given: self._answered(given, answer))

    def _answered(self, given: Answer, answer: Hearer) -> None:
        match given:
            case Challenge():
                self._stage = _Stage.CHALLENGED
                answer(given)
            case Success(principal, data):
                self._judged(self._expected(principal), ReasonCode.NOT_AUTHORIZED, answer, data)
            case Failure(_, data):
                self._refuse(answer, ReasonCode.NOT_AUTHORIZED, data=data)

    # Who it is, and whether it may enter

    def _expected(self, principal: Principal | None) -> Principal | None:
        """Return the principal, unless the CONNECT named somebody else or the connection is somebody else's already."""
        if principal is None:
            return None
        known = self._place.username if self._principal is None else self._principal.name
        if known in (None, principal.name):
            return principal
        self._log(f"proved to be user '{principal.name}', not '{known}'")
        return None

    def _judged(self, principal: Principal | None, wrong: ReasonCode, answer: Hearer, data: bytes = b"") -> None:
        if principal is None:
            self._refuse(answer, wrong)
        else:
            self._enter(principal, data, answer)

    def _enter(self, principal: Principal, data: bytes, answer: Hearer) -> None:
        broker, name = self._settings.broker, self._place.vhost
        try:
            vhost = broker.vhost(name)
            permissions = self._access.enter(principal, name)
        except Refused as refusal:
            self._refuse(answer, ReasonCode.NOT_AUTHORIZED, str(refusal))
            return
        try:
            self._require_room(principal)
        except NotAllowed as refusal:
            self._log(str(refusal))
            self._end(answer, TurnedAway(ReasonCode.QUOTA_EXCEEDED, str(refusal)))
            return
        self._principal, self._dialogue, self._stage = principal, None, _Stage.WELCOME
        answer(Welcome(vhost, principal, permissions, data))

    def _require_room(self, principal: Principal) -> None:
        """Keep the limits of connections. :raises NotAllowed: when there is no room for this one, if it is new."""
        if self._principal is None:
            require_room_for_connection(self._settings.broker, self._place.vhost, principal.name)

    # Turning away

    def _refuse(self, answer: Hearer, reason: ReasonCode, why: str = "", data: bytes = b"") -> None:
        """Turn the client away for what it is or claims to be; ``why`` is for the log, where it is not there yet."""
        if why:
            self._log(why)
        delay_s = self._settings.refusal_delay_s if self._principal is None else 0.0
        self._end(answer, TurnedAway(reason, _TEXTS[reason], delay_s, data))

    def _end(self, answer: Hearer, verdict: TurnedAway) -> None:
        self._stage = _Stage.OVER
        answer(verdict)

    def _log(self, reason: str) -> None:
        peer, user = self._arrival.peer_host, self._place.username
        _log.warning("login refused", peer=peer, client_id=self._client_id, user=shown(user or ""), reason=reason)
