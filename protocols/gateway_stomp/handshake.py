"""The handshake of a connection: version, authentication and virtual host (1.2, "Connecting")."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from gateway.access import Access, Credentials, Permissions, PermissionUnknown, Principal, VhostPermissions
from gateway.kernel.broker.broker import Broker
from gateway.kernel.broker.connection_limits import require_room_for_connection
from gateway.kernel.errors import GatewayError, NotAllowed
from gateway.kernel.messages.origin import Origin
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import Driver
from gateway.net.outbox import Outbox
from gateway_stomp.conversation import Conversation
from gateway_stomp.errors import StompError
from gateway_stomp.frames import encode
from gateway_stomp.heartbeats import Heartbeats, heartbeats
from gateway_stomp.listener_context import StompContext
from gateway_stomp.scope import Host, Scope
from gateway_stomp.state import State
from gateway_stomp.versions import Version, highest_common

#: The protocol name in the counts of login attempts.
_PROTOCOL: Final = "stomp"

PLAIN: Final = "PLAIN"
EXTERNAL: Final = "EXTERNAL"


class Visitor(Host, Protocol):
    """The connection of a client that logs in, as its handshake uses it."""

    settings: StompContext
    driver: Driver
    outbox: Outbox
    state: State

    def opened(self, conversation: Conversation) -> None:
        """Start the conversation: the virtual host is open."""
        ...

    def resume_reading(self) -> None:
        """Continue with the input that arrived during the authentication."""
        ...

    def fail(self, error: GatewayError) -> None:
        """Send an ERROR frame, and close."""
        ...


class Handshake:
    """Performs the login of one connection. Authenticators may answer at once or later.

    It keeps no reference to the connection, so that no reference cycle is left.
    """

    def __init__(self, access_of: Callable[[str], Access]) -> None:
        self._access_of = access_of
        self._headers: Mapping[str, str] = {}
        self._is_implicit = False
        self._permissions: VhostPermissions | None = None
        self.principal: Principal | None = None
        self.mechanism = ""
        self.version = Version.V10
        self.heartbeats = Heartbeats()

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        return "" if self.principal is None else self.principal.name

    @property
    def client_id(self) -> str:
        """The client's name in ActiveMQ's ``client-id``, empty if it gave none."""
        return self._headers.get("client-id", "")

    @property
    def permissions(self) -> Permissions:
        """The user's current permissions. :raises AccessRefused: when access to the virtual host was revoked."""
        assert self._permissions is not None
        return self._permissions.current

    def connect(self, connection: Visitor, headers: Mapping[str, str]) -> None:
        """Handle a CONNECT: start the authentication. :raises StompError: when the frame is invalid."""
        self.version = highest_common(headers.get("accept-version"))
        self.heartbeats = heartbeats(headers.get("heart-beat"))
        self._headers = {name: value for name, value in headers.items() if name != "passcode"}
        self._ask(connection, self._credentials(connection, headers))

    def connect_implicitly(self, connection: Visitor) -> None:
        """Log in a client that starts without CONNECT, as the default user."""
        self._is_implicit = True
        self.connect(connection, {})

    def _credentials(self, connection: Visitor, headers: Mapping[str, str]) -> Credentials:
        """Return the client's credentials: by name, otherwise by its certificate, otherwise the default user's."""
        settings = connection.settings
        certificate, host = connection.driver.certificate, connection.driver.peer_host
        login = headers.get("login")
        if login is None and certificate is not None and settings.certificate_login:
            return Credentials(EXTERNAL, certificate=certificate, peer_host=host)
        if login is None:
            login = settings.default_user
            passcode = headers.get("passcode", settings.default_passcode)
        else:
            passcode = headers.get("passcode", "")
        return Credentials(PLAIN, login, passcode, certificate=certificate, peer_host=host)

    def _ask(self, connection: Visitor, claimed: Credentials) -> None:
        """Start the authentication. Only a user that passes it learns that its virtual host does not exist."""
        name = self._vhost_name(connection.settings)
        connection.state = State.AUTHENTICATING
        self.mechanism = claimed.mechanism
        if claimed.mechanism == PLAIN and not (claimed.username and claimed.password):
            self._authenticated(
                connection, None, claimed, name
            )  # some directories accept an empty password as an anonymous login
        else:
            settings = connection.settings
            is_there = name in settings.broker.vhost_by_name
            access = settings.access_of(name) if is_there else settings.login
            access.authenticate(claimed, lambda principal: self._authenticated(connection, principal, claimed, name))

    def _vhost_name(self, settings: StompContext) -> str:
        """Return the name of the virtual host; clients of ActiveMQ send the host name of the broker instead."""
        name = self._headers.get("host", settings.vhost)
        is_known = name in settings.broker.vhost_by_name
        return name if is_known or not settings.activemq else settings.vhost

    def _authenticated(
        self, connection: Visitor, principal: Principal | None, claimed: Credentials, vhost_name: str
    ) -> None:
        """Continue after the authentication; the connection may be closed by then."""
        broker = connection.settings.broker
        if connection.state is not State.AUTHENTICATING:
            return
        try:
            if principal is None:
                # the authenticator has logged the name already
                raise StompError(
                    "Bad CONNECT", f"Access refused for user '{claimed.username[:200]}'\n", "access refused"
                )
            vhost = self._admit(broker, principal, vhost_name)
        except PermissionUnknown as unknown:
            unknown.when_known(lambda: self._authenticated(connection, principal, claimed, vhost_name))
            return
        except NotAllowed as refusal:
            _count(broker, False, claimed)
            connection.fail(StompError("Bad CONNECT", str(refusal)))
        except GatewayError as error:
            _count(broker, False, claimed)
            connection.fail(error)
        else:
            _count(broker, True, claimed)
            self._enter(connection, principal, vhost)
        connection.resume_reading()

    def _admit(self, broker: Broker, principal: Principal, vhost_name: str) -> VirtualHost:
        """Return the virtual host for an authenticated client.

        :raises StompError: when it does not exist or the user has no access; the error is the same.

        :raises NotAllowed: when a limit of connections is reached.
        """
        self.principal = principal
        try:
            vhost = broker.vhost(vhost_name)
            self._permissions = VhostPermissions(self._access_of, principal, vhost)
        except NotAllowed:
            self.principal = None
            raise StompError("Bad CONNECT", f"Virtual host '{vhost_name[:200]}' access denied") from None
        require_room_for_connection(broker, vhost.name, principal.name)
        return vhost

    def _enter(self, connection: Visitor, principal: Principal, vhost: VirtualHost) -> None:
        settings, version = connection.settings, self.version
        session = f"session-{settings.token()}"
        origin = Origin(connection.driver.name, 1, principal.name, version.protocol, grant=principal.grant)
        scope = Scope(connection, settings, vhost, connection.outbox, origin, version, session, self.client_id)
        connection.opened(Conversation(scope))
        if not self._is_implicit:
            connected = (
                ("version", version.value),
                ("session", session),
                ("heart-beat", self.heartbeats.written),
                ("server", settings.server),
            )
            connection.outbox.write(encode("CONNECTED", connected, Version.V10))


def _count(broker: Broker, has_succeeded: bool, claimed: Credentials) -> None:
    broker.connections.count_login(_PROTOCOL, has_succeeded, claimed.username, claimed.peer_host, claimed.mechanism)
