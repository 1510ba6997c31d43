"""A plugin that authenticates users of its own and decides what they may do."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.api import Authenticator, Authorizer, Credentials, Permissions, Principal, hookimpl
from gateway.simulation.plugins.moods import PluginMood, PluginMoods

#: The beginning of the names of its users, whose passwords are their names.
USERS: Final = "asked-"


class _Authenticator:
    """Accepts the plugin's users."""

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        name = credentials.username
        is_known = name.startswith(USERS) and credentials.password == name
        answer(Principal(name) if is_known else None)


class _Authorizer:
    """Permits its users everything; any fault must refuse it."""

    def __init__(self, plugin: "AccessPlugin") -> None:
        self._plugin = plugin

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        moods = self._plugin.moods
        match moods.be(self._plugin.mood_of_user.get(principal.name, PluginMood.WORKS), "authorizer"):
            case PluginMood.RAISES:
                raise moods.failure()
            case PluginMood.ANSWERS_NONSENSE:
                nonsense: Permissions | None = moods.nonsense()
                return moods.failure() if nonsense is None else nonsense  # type: ignore[return-value]  # None is valid
            case _:
                return Permissions(principal.name, vhost, ".*", ".*", ".*")


class AccessPlugin:
    """The authenticator and the authorizer. ``mood_of_user`` is what the authorizer does when it is asked for a user.

    ``permissions_changed`` lets the broker ask again.
    """

    def __init__(self, moods: PluginMoods, mood_of_user: dict[str, PluginMood]) -> None:
        self.moods = moods
        self.mood_of_user = mood_of_user
        self.permissions_changed: Callable[[], None] = lambda: None

    @hookimpl
    def gateway_authenticators(self) -> Sequence[Authenticator]:
        """Offer the authenticator."""
        return (_Authenticator(),)

    @hookimpl
    def gateway_authorizers(self, permissions_changed: Callable[[], None]) -> Sequence[Authorizer]:
        """Offer the authorizer."""
        self.permissions_changed = permissions_changed
        return (_Authorizer(self),)
