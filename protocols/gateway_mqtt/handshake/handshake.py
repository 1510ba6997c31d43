"""The handshake of a connection: login, session, and the negotiated limits of both sides (3.1, 3.2)."""

from collections.abc import Callable
from typing import Final, Protocol

from gateway.access import Challenge, Operation, PermissionUnknown, VhostPermissions
from gateway.kernel.broker.connections import TICKS_PER_S
from gateway.kernel.errors import AccessRefused, GatewayError, NotAllowed
from gateway.kernel.sessions.session import Holder, Session
from gateway_mqtt.codec.data_types import LARGEST_PACKET
from gateway_mqtt.codec.encoding import auth, connack
from gateway_mqtt.codec.errors import MqttError, protocol_error
from gateway_mqtt.codec.packets import Auth, Connect
from gateway_mqtt.codec.properties import Properties, PropertyId
from gateway_mqtt.codec.reasons import ReasonCode, reason_for
from gateway_mqtt.conversation import Conversation, client_limits
from gateway_mqtt.handshake.login import Login, LoginAccepted, LoginRefused, LoginResult
from gateway_mqtt.handshake.vhost_choice import ConnectionSource
from gateway_mqtt.handshake.will import Will
from gateway_mqtt.listener_context import MqttContext
from gateway_mqtt.scope import Host, Scope
from gateway_mqtt.state import State
from gateway_mqtt.traffic.packet_outbox import PacketOutbox

#: The longest client identifier, in bytes of UTF-8: it becomes part of queue names.
LONGEST_CLIENT_ID: Final = 200


class Visitor(Host, Holder, Protocol):
    """The connection of a client that logs in, as its handshake uses it."""

    settings: MqttContext
    packet_outbox: PacketOutbox
    conversation: Conversation | None
    handshake: "Handshake | None"
    state: State
    version: int
    keep_alive_s: int
    explains: bool
    is_from_page: bool
    expiry_s: float

    def opened(self, conversation: Conversation) -> None:
        """Enter the open state: the client is in its virtual host."""
        ...

    def resume_reading(self) -> None:
        """Continue with the input that arrived during the authentication."""
        ...

    def end(self, reason: ReasonCode, text: str) -> None:
        """End the connection from this side, with the reason if the version can carry it."""
        ...


class Handshake:
    """Performs the login of one connection, and its later re-authentications. Results may arrive asynchronously.

    A connection without an authentication method drops it after the login, because it cannot authenticate again.
    """

    def __init__(self, connection: Visitor) -> None:
        self._connection = connection
        self._connect: Connect | None = None
        self._login: Login | None = None
        self._accepted: LoginAccepted | None = None
        self._will: Will | None = None
        self._refusal: LoginRefused | None = None
        self._ticks = 0
        self._removes_stored = False
        self.client_id = ""
        self.is_assigned = False

    @property
    def user_name(self) -> str:
        """The name of the user whose login was accepted; empty before."""
        return "" if self._accepted is None else self._accepted.principal.name

    # Login

    def connect(self, connect: Connect) -> None:
        """Handle a CONNECT and start the login. :raises MqttError: if the packet is not acceptable."""
        connection = self._connection
        connection.explains = connect.properties.get(PropertyId.REQUEST_PROBLEM_INFORMATION, 1) == 1
        connection.max_packet_size = connect.properties.get(PropertyId.MAXIMUM_PACKET_SIZE, LARGEST_PACKET)
        self._connect = connect if connect.password is None else connect._replace(password=None)
        self.client_id = connect.client_id or self._assigned(connect)
        if len(self.client_id.encode()) > LONGEST_CLIENT_ID:
            text = f"the client identifier is longer than {LONGEST_CLIENT_ID} bytes"
            raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, text)
        if connect.will is not None:
            self._will = Will(connect.will)
        driver = connection.driver
        source = ConnectionSource(
            driver.peer_host, _local_port(driver.name), driver.certificate, connection.is_from_page
        )
        self._login = Login(connection.settings.login, source, connect, self.client_id)
        self._start_step(lambda login: login.begin(self._on_result))

    def proceed(self, packet: Auth) -> None:
        """Handle an AUTH: the next step of a method, or the start of a re-authentication (4.12).

        :raises MqttError: if the client may not send it now.
        """
        if self._login is None:  # MQTT-4.12.0-7: CONNECT had no method
            raise protocol_error("AUTH without an Authentication Method")
        self._start_step(lambda login: login.proceed(packet, self._on_result))

    def _assigned(self, connect: Connect) -> str:
        """Return a generated client identifier; 3.x allows this only for sessions that end with the connection."""
        if connect.version < 5 and not connect.clean_start:
            raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, "a persistent session needs a client identifier")
        self.is_assigned = True
        return f"auto-{self._connection.settings.token()}"

    def _start_step(self, step: Callable[[Login], None]) -> None:
        connection, login = self._connection, self._login
        assert login is not None
        if connection.conversation is None:
            connection.state = State.AUTHENTICATING
        step(login)

    def _on_result(self, result: LoginResult) -> None:
        """Act on the result of a step, which may arrive after the connection has closed."""
        connection = self._connection
        if connection.state is State.CLOSED:
            return
        is_waiting = connection.state is State.AUTHENTICATING
        self._run_step(lambda: self._act_on(result))
        if is_waiting and connection.state is not State.AUTHENTICATING:
            connection.resume_reading()

    def _act_on(self, result: LoginResult) -> None:
        if isinstance(result, Challenge):
            self._challenge(result)
        elif isinstance(result, LoginRefused):
            self._refuse(result)
        elif self._connection.conversation is None:
            self._enter(result)
        else:
            self._accept_again(result, self._connection.conversation.scope)

    def _run_step(self, step: Callable[[], None]) -> None:
        """Run a step of the login; end the connection with the reason if it fails."""
        connection = self._connection
        try:
            step()
        except PermissionUnknown as unknown:
            unknown.when_known(lambda: self._run_late(step))
        except MqttError as error:
            connection.end(error.reason, str(error))
        except GatewayError as error:
            connection.end(_reason(error), str(error))

    def _run_late(self, step: Callable[[], None]) -> None:
        """Run a step again that waited for a permission, if the connection is still open."""
        if self._connection.state is State.AUTHENTICATING:
            self._run_step(step)
            self._connection.resume_reading()

    def _enter_late(self, accepted: LoginAccepted) -> None:
        """Enter after the client's previous session has ended, if the connection is still open."""
        if self._connection.state is State.AUTHENTICATING:
            self._run_step(lambda: self._enter(accepted))
            self._connection.resume_reading()

    def _challenge(self, challenge: Challenge) -> None:
        connection = self._connection
        if connection.conversation is None:
            connection.state = State.CHALLENGED
        self._write(auth(ReasonCode.CONTINUE_AUTHENTICATION, self._method(challenge.data)))

    def _write(self, packet: bytes) -> None:
        """Send a packet that the client waits for.

        :raises MqttError: if it is larger than the client's Maximum Packet Size (MQTT-3.1.2-24).
        """
        connection = self._connection
        if len(packet) > connection.max_packet_size:
            text = f"answer of {len(packet)} bytes; the client's Maximum Packet Size is {connection.max_packet_size}"
            raise MqttError(ReasonCode.PACKET_TOO_LARGE, text)
        connection.packet_outbox.write(packet)

    def _method(self, data: bytes) -> Properties:
        assert self._login is not None
        properties: Properties = {PropertyId.AUTHENTICATION_METHOD: self._login.method}
        if data:
            properties[PropertyId.AUTHENTICATION_DATA] = data
        return properties

    def _refuse(self, refusal: LoginRefused) -> None:
        """Refuse the login; failed credentials are answered with a delay that slows password guessing."""
        connection = self._connection
        if connection.conversation is not None or refusal.delay_s <= 0:
            connection.end(refusal.reason, refusal.text)
            return
        connection.state = State.REFUSED
        self._refusal = refusal
        self._ticks = int(refusal.delay_s * TICKS_PER_S)

    def tick(self) -> None:
        """Count down the delay of a refusal; called ``TICKS_PER_S`` times a second."""
        if self._refusal is not None:
            self._ticks -= 1
            if self._ticks <= 0:
                refusal, self._refusal = self._refusal, None
                self._connection.end(refusal.reason, refusal.text)

    def _accept_again(self, accepted: LoginAccepted, scope: Scope) -> None:
        """Finish a re-authentication (MQTT-4.12.1-1). User and virtual host cannot change."""
        if (accepted.principal.name, accepted.vhost) != (scope.user_name, scope.vhost):
            raise MqttError(ReasonCode.NOT_AUTHORIZED, "re-authentication cannot change the user or the virtual host")
        scope.access = self._accept(accepted)
        self._connection.settings.broker.permissions_changed(accepted.vhost.name)
        self._write(auth(ReasonCode.SUCCESS, self._method(accepted.data)))

    def _accept(self, accepted: LoginAccepted) -> VhostPermissions:
        """Begin the time until the credentials expire; return the client's permissions."""
        self._connection.expiry_s = accepted.principal.expires_at_s
        access_of = self._connection.settings.access_of
        return VhostPermissions(access_of, accepted.principal, accepted.vhost, accepted.permissions)

    # Session

    def _enter(self, accepted: LoginAccepted) -> None:
        connection, connect = self._connection, self._connect
        assert connect is not None
        settings = connection.settings
        rules = settings.topics_in(accepted.vhost.name)
        if self._will is not None:
            self._will.require_accepted(settings.topics, rules.mapping)
        expiry_s = self._expiry_s(connect)
        connection.keep_alive_s = self._keep_alive_s(connect)
        answer: Properties = {}
        if connect.version == 5:
            answer = self._fit_connack(self._properties(connect, expiry_s, accepted))
        sessions, user = accepted.vhost.sessions, accepted.principal.name
        self._require_own_session(sessions.get(self.client_id), accepted)
        self._removes_stored = self._removes_stored or sessions.removes_stored(self.client_id, connect.clean_start)
        if not sessions.prepare(self.client_id, connect.clean_start, user, lambda: self._enter_late(accepted)):
            connection.state = State.AUTHENTICATING
            return
        access, self._accepted = self._accept(accepted), accepted
        session, is_present = sessions.open(self.client_id, connect.clean_start, expiry_s, connection, user)
        outbox = connection.packet_outbox
        scope = Scope(connection, settings, access, session, outbox, connect.version, rules)
        receive_maximum = min(
            connect.properties.get(PropertyId.RECEIVE_MAXIMUM, settings.prefetch), settings.max_inflight
        )
        alias_maximum = min(connect.properties.get(PropertyId.TOPIC_ALIAS_MAXIMUM, 0), settings.topic_alias_max)
        limits = client_limits(receive_maximum, connection.max_packet_size, alias_maximum)
        conversation = Conversation(scope, self._will, limits)
        if is_present:
            conversation.begin_receiving()
        connection.opened(conversation)
        self._leave_login()
        if self._removes_stored:  # the client relies on it: after a crash, neither the will nor the session comes back
            outbox.promise(scope.journal.pending_lsn)
        outbox.write(connack(connect.version, is_present, ReasonCode.SUCCESS, answer))
        if is_present:
            session.restore_queues(scope.exchange)
            conversation.begin_receiving().delivering.resume_session()

    def _leave_login(self) -> None:
        """Drop what only the login and later re-authentications need: 0.5 KiB of an idle connection."""
        self._connect = self._accepted = None
        if self._login is None or not self._login.has_method:
            self._connection.handshake = None

    def _require_own_session(self, session: Session | None, accepted: LoginAccepted) -> None:
        """Refuse a client identifier whose session belongs to another user.

        A session of an earlier version of this broker has no user. The first user with permission to configure its
        queues takes it over.

        :raises MqttError: if so; the session is unchanged.
        """
        user = accepted.principal.name
        if session is None or (session.user and session.belongs_to(user)):
            return
        names = [session.own_queue_name(level) for level in (0, 1)]
        if session.user or not all(accepted.permissions.may(Operation.CONFIGURE, name, "queue") for name in names):
            text = f"the session of client '{self.client_id}' belongs to another user"
            raise MqttError(ReasonCode.CLIENT_IDENTIFIER_NOT_VALID, text)

    def _fit_connack(self, properties: Properties) -> Properties:
        """Return the properties of a CONNACK that fits the client's Maximum Packet Size (MQTT-3.1.2-24).

        Optional limits of this server are omitted if there is no room: a client that exceeds one gets an error then.

        :raises MqttError: if there is no room for the required properties.
        """
        connection = self._connection
        for left_out in (None, PropertyId.TOPIC_ALIAS_MAXIMUM, PropertyId.MAXIMUM_PACKET_SIZE):
            properties = {name: value for name, value in properties.items() if name is not left_out}
            size = len(connack(connection.version, False, ReasonCode.SUCCESS, properties))
            if size <= connection.max_packet_size:
                return properties
        text = f"CONNACK of {size} bytes; the client's Maximum Packet Size is {connection.max_packet_size}"
        raise MqttError(ReasonCode.PACKET_TOO_LARGE, text)

    def _expiry_s(self, connect: Connect) -> int:
        """Return the time the session outlives the connection; 0 for a clean session of 3.x."""
        longest = self._connection.settings.max_session_expiry_s
        if connect.version < 5:
            return 0 if connect.clean_start else longest
        return int(min(connect.properties.get(PropertyId.SESSION_EXPIRY_INTERVAL, 0), longest))

    def _keep_alive_s(self, connect: Connect) -> int:
        most = self._connection.settings.keep_alive_max_s
        if most and connect.version == 5:
            return min(connect.keep_alive_s or most, most)
        return connect.keep_alive_s

    def _properties(self, connect: Connect, expiry_s: int, accepted: LoginAccepted) -> Properties:
        """Return the properties of the CONNACK for a 5.0 client (3.2.2.3)."""
        settings = self._connection.settings
        properties: Properties = {
            PropertyId.MAXIMUM_PACKET_SIZE: settings.max_packet_size,
            PropertyId.TOPIC_ALIAS_MAXIMUM: settings.topic_alias_max,
        }
        if settings.receive_maximum < 65_535:
            properties[PropertyId.RECEIVE_MAXIMUM] = settings.receive_maximum
        if expiry_s != connect.properties.get(PropertyId.SESSION_EXPIRY_INTERVAL, 0):
            properties[PropertyId.SESSION_EXPIRY_INTERVAL] = expiry_s
        if self.is_assigned:
            properties[PropertyId.ASSIGNED_CLIENT_IDENTIFIER] = self.client_id
        if self._connection.keep_alive_s != connect.keep_alive_s:
            properties[PropertyId.SERVER_KEEP_ALIVE] = self._connection.keep_alive_s
        if self._login is not None and self._login.method:
            properties |= self._method(accepted.data)
        return properties


def _reason(error: GatewayError) -> ReasonCode:
    return reason_for(error) if isinstance(error, AccessRefused | NotAllowed) else ReasonCode.UNSPECIFIED_ERROR


def _local_port(name: str) -> int:
    """Return the local port, the end of the connection's name."""
    port = name.rpartition(":")[2]
    return int(port) if port.isdigit() else 0
