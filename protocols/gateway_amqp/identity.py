"""The client of a connection: its credentials first, then a principal with permissions in a virtual host."""

from collections.abc import Mapping

from gateway.access import Credentials, Permissions, Principal
from gateway.kernel.errors import AccessRefused, NotAllowed
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
        "_version",
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
        self._permissions: Permissions | None = None
        self._version = 0

    def set_client_properties(self, client_properties: Mapping[str, Value]) -> None:
        """Set the properties that the client announced."""
        self.client_properties = client_properties
        self._capabilities = capabilities(client_properties)

    def enter(self, vhost: VirtualHost) -> None:
        """Open a virtual host. :raises NotAllowed: when the principal has no access to it."""
        assert self.principal is not None
        self._permissions = self._settings.access_of(vhost.name).enter(self.principal, vhost.name)
        self._version = vhost.version
        self.vhost = vhost
        self.credentials = None

    @property
    def permissions(self) -> Permissions:
        """The principal's current permissions, read again after a change. :raises AccessRefused: when access was
        revoked.
        """
        assert self.vhost is not None
        if self._permissions is None or self._version != self.vhost.version:
            try:
                self.enter(self.vhost)
            except NotAllowed as refusal:
                raise AccessRefused(str(refusal)) from None
            assert self._permissions is not None
        return self._permissions

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        return "" if self.principal is None else self.principal.name

    def has_capability(self, name: str) -> bool:
        """Return whether the client announced a capability."""
        return name in self._capabilities
