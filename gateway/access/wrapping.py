"""Objects that stand before the authenticators and authorizers of other plugins."""

from typing import Protocol

from gateway.access.authorities import Authenticator, Authorizer


class AccessWrapper(Protocol):
    """Stands before the authenticators and authorizers of other plugins, for example to cache their answers.

    Supplied by plugins. Each method is called once for each object of another plugin, when that is put in use, and
    returns the object to use in its place, or the same one. Its replacement may have more methods: ``forget`` drops
    remembered answers, and ``permissions_changed`` of an authorizer is called when a plugin of the virtual host reports
    changed permissions.
    """

    def authenticator(self, plugin: str, asked: Authenticator) -> Authenticator:
        """Return the object that replaces an authenticator of ``plugin``."""
        ...

    def authorizer(self, plugin: str, asked: Authorizer) -> Authorizer:
        """Return the object that replaces an authorizer of ``plugin``."""
        ...
