"""The handshake from start-ok to open-ok: authentication, negotiated limits, virtual host (2.2.4)."""

from typing import Final, Protocol

from pamqp import commands
from pamqp.base import Frame

from gateway.access import Credentials, PermissionUnknown, Principal
from gateway.kernel.broker.connection_limits import require_room_for_connection
from gateway.kernel.errors import GatewayError, NotAllowed
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import Driver
from gateway.net.outbox import Outbox
from gateway_amqp.errors import reply_text
from gateway_amqp.identity import PeerIdentity
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.login import credentials
from gateway_amqp.methods import bytes_of, table_of
from gateway_amqp.state import State
from gateway_amqp.tuning import Tuning

#: The protocol name in the counts of login attempts.
_PROTOCOL: Final = "amqp091"


class Visitor(Protocol):
    """The connection of a client that logs in, as its handshake uses it."""

    settings: AmqpContext
    driver: Driver
    state: State
    identity: PeerIdentity
    outbox: Outbox

    def send_method(self, method: Frame) -> None:
        """Send a method on channel 0."""
        ...

    def apply_tuning(self, tuning: Tuning) -> None:
        """Apply the negotiated limits."""
        ...

    def resume_reading(self) -> None:
        """Continue with the input that arrived during the authentication."""
        ...

    def fail(self, error: GatewayError) -> None:
        """Close the connection after a refusal or a violation."""
        ...

    def end(self, reason: str) -> None:
        """Close the transport after the output that is already written."""
        ...


class Handshake:
    """Performs the handshake of one connection. Authenticators may answer at once or later."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Visitor) -> None:
        self._connection = connection

    def start_ok(self, method: commands.Connection.StartOk) -> None:
        """Start the authentication (10, 11)."""
        connection = self._connection
        connection.identity.set_client_properties(table_of(method.client_properties))
        claimed = credentials(
            method.mechanism,
            bytes_of(method.response),
            connection.driver.peer_host,
            connection.driver.certificate,
            connection.settings.mechanisms,
        )
        connection.state = State.AUTHENTICATING
        connection.identity.credentials = claimed
        connection.identity.mechanism = claimed.mechanism
        connection.settings.login.authenticate(claimed, self._authenticated)

    def tune_ok(self, method: commands.Connection.TuneOk) -> None:
        """Apply the negotiated limits (10, 31)."""
        settings = self._connection.settings
        self._connection.apply_tuning(Tuning(method, settings.frame_max, settings.channel_max))
        self._connection.state = State.OPENING

    def open(self, method: commands.Connection.Open) -> None:
        """Open a virtual host (10, 40). Its own plugins may authenticate a user that the gateway does not know."""
        connection = self._connection
        vhost = connection.settings.broker.vhost(method.virtual_host)
        if connection.identity.principal is not None:
            self._enter(vhost)
            return
        assert connection.identity.credentials is not None
        connection.state = State.AUTHENTICATING
        access = connection.settings.access_of(vhost.name)
        access.authenticate(
            connection.identity.credentials, lambda principal: self._authenticated_in_vhost(principal, vhost)
        )

    def update_secret(self, method: commands.Connection.UpdateSecret) -> None:
        """Replace the client's token by a new one (10, 70). Other logins do not expire and need no new secret."""
        identity, settings = self._connection.identity, self._connection.settings
        assert identity.principal is not None
        assert identity.vhost is not None
        if identity.principal.grant is None:
            self._connection.send_method(commands.Connection.UpdateSecretOk())
            return
        peer_host = self._connection.driver.peer_host
        secret = bytes_of(method.new_secret).decode(errors="replace")
        claimed = Credentials("PLAIN", identity.user_name, secret, peer_host=peer_host)
        settings.access_of(identity.vhost.name).authenticate(claimed, self._renewed)

    def _renewed(self, principal: Principal | None) -> None:
        """Continue with a new secret; user and virtual host cannot change."""
        connection, identity = self._connection, self._connection.identity
        if connection.state is not State.OPEN:
            return
        try:
            if principal is None or principal.name != identity.user_name:
                raise NotAllowed("the new secret was refused")
            identity.renew(principal)
        except PermissionUnknown as unknown:
            unknown.when_known(lambda: self._renewed(principal))
        except GatewayError as error:
            connection.fail(error)
        else:
            assert identity.vhost is not None
            connection.settings.broker.permissions_changed(identity.vhost.name)
            connection.send_method(commands.Connection.UpdateSecretOk())

    def _authenticated(self, principal: Principal | None) -> None:
        """Continue after the authentication, with the input received meanwhile."""
        connection = self._connection
        if connection.state is not State.AUTHENTICATING:
            return
        if principal is not None:
            self._set_principal(principal)
        elif not connection.settings.may_authenticate_in_vhost():
            self._refuse()
            return
        connection.state = State.TUNING
        settings = connection.settings
        connection.send_method(commands.Connection.Tune(settings.channel_max, settings.frame_max, settings.heartbeat_s))
        connection.resume_reading()

    def _authenticated_in_vhost(self, principal: Principal | None, vhost: VirtualHost) -> None:
        """Continue after the authentication by a virtual host's own authenticators."""
        connection = self._connection
        if connection.state is not State.AUTHENTICATING:
            return
        if principal is None:
            self._refuse()
            return
        self._set_principal(principal)
        self._enter_late(vhost)

    def _enter_late(self, vhost: VirtualHost) -> None:
        """Enter a virtual host after its own authentication, with the input received meanwhile."""
        connection = self._connection
        if connection.state is not State.AUTHENTICATING:
            return
        try:
            self._enter(vhost)
        except PermissionUnknown as unknown:
            connection.state = State.AUTHENTICATING
            unknown.when_known(lambda: self._enter_late(vhost))
            return
        except GatewayError as error:
            connection.fail(error)
        connection.resume_reading()

    def _enter(self, vhost: VirtualHost) -> None:
        connection = self._connection
        connection.state = State.OPENING
        require_room_for_connection(connection.settings.broker, vhost.name, connection.identity.user_name)
        connection.identity.enter(vhost)
        connection.state = State.OPEN
        connection.send_method(commands.Connection.OpenOk())
        connection.driver.opened()

    def _set_principal(self, principal: Principal) -> None:
        self._connection.identity.principal = principal
        self._count_login(True, principal.name)
        self._connection.driver.log("connection authenticated", user=principal.name)

    def _count_login(self, has_succeeded: bool, user: str) -> None:
        connection, claimed = self._connection, self._connection.identity.credentials
        mechanism = "" if claimed is None else claimed.mechanism
        peer_host = connection.driver.peer_host
        connection.settings.broker.connections.count_login(_PROTOCOL, has_succeeded, user, peer_host, mechanism)

    def _refuse(self) -> None:
        """Report the reason to a client with RabbitMQ's authentication_failure_close; close the connection."""
        connection = self._connection
        claimed = connection.identity.credentials
        assert claimed is not None
        self._count_login(False, claimed.username)
        mechanism = claimed.mechanism
        if connection.identity.has_capability("authentication_failure_close"):
            text = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
            connection.send_method(commands.Connection.Close(403, reply_text(403, text), 0, 0))
        connection.end("authentication refused")
