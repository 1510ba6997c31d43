"""The client of a connection: its credentials first, then a principal with permissions in a virtual host."""

from collections.abc import Mapping

from gateway.access import Credentials, Permissions, Principal, VhostPermissions
from gateway.kernel.messages.message import Value
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.tuning import capabilities


class PeerIdentity:
    """The client's properties, credentials, principal, virtual host and permissions.

    ``credentials`` are dropped when the authentication is complete.
    """

    __slots__ = (
        "_capabilities",
        "_permissions",
        "_settings",
        "client_properties",
        "credentials",
        "mechanism",
        "principal",
        "vhost",
    )

    def __init__(self, settings: AmqpContext) -> None:
        self.client_properties: Mapping[str, Value] = {}
        self.credentials: Credentials | None = None
        self.mechanism = ""
        self.principal: Principal | None = None
        self.vhost: VirtualHost | None = None
        self._settings = settings
        self._capabilities: frozenset[str] = frozenset()
        self._permissions: VhostPermissions | None = None

    def set_client_properties(self, client_properties: Mapping[str, Value]) -> None:
        """Set the properties that the client announced."""
        self.client_properties = client_properties
        self._capabilities = capabilities(client_properties)

    def enter(self, vhost: VirtualHost) -> None:
        """Open a virtual host. :raises NotAllowed: when the principal has no access to it."""
        assert self.principal is not None
        self._permissions = VhostPermissions(self._settings.access_of, self.principal, vhost)
        self.vhost = vhost
        self.credentials = None

    @property
    def permissions(self) -> Permissions:
        """The principal's current permissions. :raises AccessRefused: when access to the virtual host was revoked."""
        assert self._permissions is not None
        return self._permissions.current

    @property
    def expires_at_s(self) -> float:
        """The Unix time at which the credentials expire; 0 is never."""
        return 0.0 if self.principal is None else self.principal.expires_at_s

    def renew(self, principal: Principal) -> None:
        """Replace the principal by the one of a new secret. :raises NotAllowed: when it has no access."""
        assert self.vhost is not None
        self._permissions = VhostPermissions(self._settings.access_of, principal, self.vhost)
        self.principal = principal

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        return "" if self.principal is None else self.principal.name

    def has_capability(self, name: str) -> bool:
        """Return whether the client announced a capability."""
        return name in self._capabilities
