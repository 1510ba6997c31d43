"""The permissions of a client that is connected to a virtual host; operators may change them meanwhile."""

from collections.abc import Callable

from gateway.access.chain import Access
from gateway.access.permissions import Permissions
from gateway.access.principals import Principal
from gateway.kernel.errors import AccessRefused, NotAllowed
from gateway.kernel.vhosts.virtual_host import VirtualHost


class VhostPermissions:
    """The permissions of ``principal`` in ``vhost``, read again after each change.

    ``read`` are permissions that the login has read already; without them they are read now.

    :raises NotAllowed: when the principal has no access to the virtual host.
    """

    __slots__ = ("_access_of", "_permissions", "_version", "principal", "vhost")

    def __init__(
        self,
        access_of: Callable[[str], Access],
        principal: Principal,
        vhost: VirtualHost,
        read: Permissions | None = None,
    ) -> None:
        self._access_of = access_of
        self.principal = principal
        self.vhost = vhost
        self._permissions = read or self._read()
        self._version = vhost.version

    @property
    def current(self) -> Permissions:
        """The current permissions.

        :raises AccessRefused: when access to the virtual host was revoked; ``PermissionUnknown`` when that is awaited.
        """
        if self._version != self.vhost.version:
            try:
                self._permissions = self._read()
            except NotAllowed as refusal:
                raise AccessRefused(str(refusal)) from None
            self._version = self.vhost.version
        return self._permissions

    def _read(self) -> Permissions:
        return self._access_of(self.vhost.name).enter(self.principal, self.vhost.name)
