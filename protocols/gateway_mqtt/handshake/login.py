"""The login of a client: authentication, virtual host and permissions, and re-authentication (4.12). No I/O.

Without an Authentication Method the client logs in by user name and password, by certificate, or anonymously. With one
it answers challenges. In both cases the permissions on the virtual host decide.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from gateway.access import (
    Access,
    Answer,
    Challenge,
    Failure,
    GuardedDialogue,
    Permissions,
    PermissionUnknown,
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
from gateway_mqtt.handshake.credentials import CLIENT_ID, EXTERNAL, PLAIN, USER_NAME, InvalidCredentials, credentials_of
from gateway_mqtt.handshake.vhost_choice import ConnectionSource, choose_vhost

_log: Final = StructuredLog("mqtt")


@dataclass(frozen=True, slots=True)
class LoginRules:
    """Login settings.

    Clients without credentials log in as ``anonymous_user``; empty refuses them. They must connect from this machine
    unless ``anonymous_from_network``, and not from a web page unless ``anonymous_from_pages``, because a page of any
    origin can connect to the machine of its reader. ``certificate_login`` accepts a certificate without a password.
    ``ignores_colons`` disables ``vhost:user`` in user names. A failed login is answered after ``refusal_delay_s``, to
    slow down password guessing.
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


class LoginAccepted(NamedTuple):
    """A successful login. ``data`` is the final data of the authentication method."""

    vhost: VirtualHost
    principal: Principal
    permissions: Permissions
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class LoginRefused:
    """A refused login, to be answered after ``delay_s``. ``text`` is sent, so it must not reveal what exists."""

    reason: ReasonCode
    text: str
    delay_s: float = 0.0
    data: bytes = b""


LoginResult: TypeAlias = LoginAccepted | Challenge | LoginRefused
LoginCallback: TypeAlias = Callable[[LoginResult], None]


class _Stage(Enum):
    """The stage of a login."""

    AUTHENTICATING = auto()
    CHALLENGED = auto()
    ACCEPTED = auto()
    OVER = auto()


#: The AUTH that a client may send in each stage (4.12, 4.12.1).
_AUTH_AT: Final = {
    _Stage.CHALLENGED: ReasonCode.CONTINUE_AUTHENTICATION,
    _Stage.ACCEPTED: ReasonCode.RE_AUTHENTICATE,
}


#: Refusal texts for clients. They do not reveal whether a user or a virtual host exists.
_TEXTS: Final = {
    ReasonCode.BAD_USER_NAME_OR_PASSWORD: "bad user name or password",
    ReasonCode.NOT_AUTHORIZED: "not authorized",
}


class Login:
    """The login of one connection, from CONNECT to ``LoginAccepted``, and its re-authentications.

    ``has_method``: CONNECT named an authentication method; only then the client may authenticate again.
    """

    def __init__(self, settings: LoginRules, source: ConnectionSource, connect: Connect, client_id: str) -> None:
        """Prepare the login. ``client_id`` is the client's own identifier or the assigned one."""
        parameters = settings.broker.parameters
        self.method: str = connect.properties.get(PropertyId.AUTHENTICATION_METHOD, "")
        self.has_method = PropertyId.AUTHENTICATION_METHOD in connect.properties
        self._settings = settings
        self._source = source
        self._connect: Connect | None = connect
        self._client_id = client_id
        self._choice = choose_vhost(
            connect.username, source, parameters, settings.default_vhost, ignores_colons=settings.ignores_colons
        )
        self._stage = _Stage.AUTHENTICATING
        self._dialogue: GuardedDialogue | None = None
        self._principal: Principal | None = None

    @property
    def _access(self) -> Access:
        return self._settings.access_of(self._choice.vhost)

    def begin(self, answer: LoginCallback) -> None:
        """Check the CONNECT, drop it, and call ``answer`` once, now or later."""
        connect, self._connect = self._connect, None
        assert connect is not None
        if self._choice.vhost not in self._settings.broker.vhost_by_name:
            self._refuse_vhost(connect, answer)
        elif self.has_method:
            self._start_dialogue(connect.properties, answer)
        else:
            self._authenticate(connect, answer)

    def proceed(self, auth: Auth, answer: LoginCallback) -> None:
        """Handle an AUTH and call ``answer`` once, now or later.

        :raises MqttError: ``PROTOCOL_ERROR`` if this AUTH is not allowed in the current stage, or it or the CONNECT has
            no method; ``BAD_AUTHENTICATION_METHOD`` if their methods differ.
        """
        method = auth.properties.get(PropertyId.AUTHENTICATION_METHOD)
        if not self.has_method or method is None:  # MQTT-4.12.0-7; 3.15.2.2.2
            raise protocol_error("AUTH without an Authentication Method")
        if method != self.method:  # MQTT-4.12.0-5, MQTT-4.12.1-1
            raise MqttError(
                ReasonCode.BAD_AUTHENTICATION_METHOD, "the Authentication Method of AUTH differs from that of CONNECT"
            )
        if auth.reason is not _AUTH_AT.get(self._stage):
            raise protocol_error(f"unexpected AUTH with reason {auth.reason.name}")
        if self._stage is _Stage.ACCEPTED:
            self._start_dialogue(auth.properties, answer)
        else:
            self._step(auth.properties, answer)

    def _refuse_vhost(self, connect: Connect, answer: LoginCallback) -> None:
        """Refuse a client of an unknown virtual host, after the time that checking a wrong password takes."""
        settings, reason = self._settings, ReasonCode.BAD_USER_NAME_OR_PASSWORD
        why = f"no virtual host '{shown(self._choice.vhost)}'"
        is_checked = connect.password is not None and settings.default_vhost in settings.broker.vhost_by_name
        try:
            username, client_id = self._choice.username, self._client_id
            claimed = credentials_of(connect, username, client_id, self._source, certificate_login=False)
        except InvalidCredentials:
            is_checked = False
        if not is_checked:
            self._refuse(answer, reason, why)
            return
        access = settings.access_of(settings.default_vhost)
        access.authenticate(claimed, lambda known: self._refuse(answer, reason, why))

    # By user name, certificate, or anonymously

    def _authenticate(self, connect: Connect, answer: LoginCallback) -> None:
        settings, username = self._settings, self._choice.username
        try:
            claimed = credentials_of(
                connect, username, self._client_id, self._source, certificate_login=settings.certificate_login
            )
        except InvalidCredentials as reason:
            self._refuse(answer, ReasonCode.BAD_USER_NAME_OR_PASSWORD, str(reason))
            return
        has_name = claimed.mechanism in (PLAIN, USER_NAME)
        wrong = ReasonCode.BAD_USER_NAME_OR_PASSWORD if has_name else ReasonCode.NOT_AUTHORIZED
        if claimed.mechanism == CLIENT_ID:
            self._access.identify(claimed, lambda known: self._finish(known or self._anonymous(), wrong, answer))
        elif claimed.mechanism == EXTERNAL:
            self._access.authenticate(claimed, lambda known: self._finish(self._matching(known), wrong, answer))
        else:
            self._access.authenticate(claimed, lambda known: self._finish(known, wrong, answer))

    def _anonymous(self) -> Principal | None:
        """Return the principal of an anonymous client; ``None`` if it may not log in."""
        settings, source = self._settings, self._source
        if not settings.anonymous_user:
            return None
        if source.is_from_page and not settings.anonymous_from_pages:
            self._log("anonymous clients cannot log in from a web page")
            return None
        if not settings.anonymous_from_network and not self._access.is_local(source.peer_host):
            self._log("anonymous clients can only log in via localhost")
            return None
        return self._access.anonymous(settings.anonymous_user, source.peer_host)

    # By an authentication method

    def _start_dialogue(self, properties: Properties, answer: LoginCallback) -> None:
        """Start a challenge-response dialogue, for the login or a re-authentication (4.12.1)."""
        visitor = Visitor(self._choice.vhost, self._client_id, self._source.peer_host, self._source.certificate)
        self._dialogue = self._access.start_dialogue(self.method, visitor)
        if self._dialogue is None:
            self._end(answer, LoginRefused(ReasonCode.BAD_AUTHENTICATION_METHOD, "no such authentication method"))
        else:
            self._step(properties, answer)

    def _step(self, properties: Properties, answer: LoginCallback) -> None:
        assert self._dialogue is not None
        self._stage = _Stage.AUTHENTICATING
        data = properties.get(PropertyId.AUTHENTICATION_DATA, b"")
        self._dialogue.step(data, lambda given: self._answered(given, answer))

    def _answered(self, given: Answer, answer: LoginCallback) -> None:
        match given:
            case Challenge():
                self._stage = _Stage.CHALLENGED
                answer(given)
            case Success(principal, data):
                self._finish(self._matching(principal), ReasonCode.NOT_AUTHORIZED, answer, data)
            case Failure(_, data):
                self._refuse(answer, ReasonCode.NOT_AUTHORIZED, data=data)

    # Identity and permissions

    def _matching(self, principal: Principal | None) -> Principal | None:
        """Return the principal if it matches the user name of the CONNECT or of the earlier login, else ``None``."""
        if principal is None:
            return None
        known = self._choice.username if self._principal is None else self._principal.name
        if known in (None, principal.name):
            return principal
        self._log(f"authenticated as user '{principal.name}', expected '{known}'")
        return None

    def _finish(self, principal: Principal | None, wrong: ReasonCode, answer: LoginCallback, data: bytes = b"") -> None:
        if principal is None:
            self._refuse(answer, wrong)
        else:
            self._enter(principal.of_client(self._client_id), data, answer)

    def _enter(self, principal: Principal, data: bytes, answer: LoginCallback) -> None:
        broker, name = self._settings.broker, self._choice.vhost
        try:
            vhost = broker.vhost(name)
            permissions = self._access.enter(principal, name)
        except PermissionUnknown as unknown:
            unknown.when_known(lambda: self._enter(principal, data, answer))
            return
        except Refused as refusal:
            self._refuse(answer, ReasonCode.NOT_AUTHORIZED, str(refusal))
            return
        try:
            self._require_room(principal)
        except NotAllowed as refusal:
            self._log(str(refusal))
            self._end(answer, LoginRefused(ReasonCode.QUOTA_EXCEEDED, str(refusal)))
            return
        self._principal, self._dialogue, self._stage = principal, None, _Stage.ACCEPTED
        self._settings.broker.connections.report_login("mqtt", True, principal.name, self._source.peer_host)
        answer(LoginAccepted(vhost, principal, permissions, data))

    def _require_room(self, principal: Principal) -> None:
        """Check the connection limits at the first login. :raises NotAllowed: if a limit is reached."""
        if self._principal is None:
            require_room_for_connection(self._settings.broker, self._choice.vhost, principal.name)

    # Refusals

    def _refuse(self, answer: LoginCallback, reason: ReasonCode, why: str = "", data: bytes = b"") -> None:
        """Refuse the login; ``why`` is for the log, unless the cause is logged already."""
        if why:
            self._log(why)
        delay_s = self._settings.refusal_delay_s if self._principal is None else 0.0
        self._end(answer, LoginRefused(reason, _TEXTS[reason], delay_s, data))

    def _end(self, answer: LoginCallback, result: LoginRefused) -> None:
        self._stage = _Stage.OVER
        user, peer_host = self._choice.username or "", self._source.peer_host
        self._settings.broker.connections.report_login("mqtt", False, user, peer_host)
        answer(result)

    def _log(self, reason: str) -> None:
        peer, user = self._source.peer_host, self._choice.username
        _log.warning("login refused", peer=peer, client_id=self._client_id, user=shown(user or ""), reason=reason)
