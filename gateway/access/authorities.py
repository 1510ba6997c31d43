"""The interfaces of what decides on logins and permissions, supplied by plugins."""

from collections.abc import Callable
from typing import Protocol

from gateway.access.permissions import Permissions
from gateway.access.principals import Credentials, Principal


class Authenticator(Protocol):
    """Authenticates clients. Supplied by plugins."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> object:
        """Call ``answer`` once, now or later, on the kernel's thread: with the principal, or ``None`` to refuse.

        Called on the kernel's thread; must not block. ``None`` also means that this authenticator does not support
        these credentials; the next one is called. Return nothing, or a ``Deferred`` whose failure refuses the login.
        """
        ...


class Authorizer(Protocol):
    """Returns the permissions of principals. Supplied by plugins."""

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions at once, from memory; ``None`` to leave the decision to the next authorizer.

        The connection caches them until the directory changes, or the ``permissions_changed`` of
        ``gateway_authorizers`` is called. An authorizer that asks another server raises ``PermissionUnknown`` until the
        answer is there, and so may the methods of its ``Permissions``.
        """
        ...
