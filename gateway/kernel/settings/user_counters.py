"""How many queues, bindings and consumers each user has, in all virtual hosts together, and how many are allowed.

A queue and a binding count for the user who made them, which their records remember; a consumer for the user of its
connection. What definitions bring along counts for no user.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.limits import limit_of

#: From a user name to the limits of this user.
LimitsOf: TypeAlias = Callable[[str], Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class UserRules:
    """The limits of each user that has none of its own; 0 is none."""

    max_queues: int = 0
    max_bindings: int = 0
    max_consumers: int = 0


class UserTally:
    """Counts one kind of thing by user. ``what`` reads ``queue``, and the limit's name is then ``max-queues``."""

    __slots__ = ("_count_by_user", "_limit_name", "_limits_of", "_what", "default")

    def __init__(self, what: str, limits_of: LimitsOf) -> None:
        self.default = 0
        self._what = what
        self._limit_name = f"max-{what}s"
        self._limits_of = limits_of
        self._count_by_user: Counter[str] = Counter()

    def count_of(self, user: str) -> int:
        """Return how many a user has."""
        return self._count_by_user[user]

    def added(self, user: str) -> None:
        """Count one in; an empty name is no user."""
        if user:
            self._count_by_user[user] += 1

    def removed(self, user: str) -> None:
        """Count one out."""
        if user:
            self._count_by_user[user] -= 1
            if not self._count_by_user[user]:  # names must not pile up
                del self._count_by_user[user]

    def require_room(self, user: str, doing: str) -> None:
        """Refuse one more. ``doing`` reads ``cannot bind``. :raises PreconditionFailed: at the limit of the user."""
        if not user:
            return
        limit = limit_of(self._limits_of(user), self._limit_name, self.default)
        if limit is not None and self._count_by_user[user] >= limit:
            raise PreconditionFailed(f"{doing}: {self._what} limit of user '{user}' ({limit}) is reached")


class UserTallies:
    """The tallies of one node."""

    def __init__(self, limits_of: LimitsOf) -> None:
        self.queues = UserTally("queue", limits_of)
        self.bindings = UserTally("binding", limits_of)
        self.consumers = UserTally("consumer", limits_of)

    def apply(self, rules: UserRules) -> None:
        """Let other limits hold for users that have none of their own; what is there already stays."""
        self.queues.default = rules.max_queues
        self.bindings.default = rules.max_bindings
        self.consumers.default = rules.max_consumers


class ConsumerTally:
    """Counts the consumers of a virtual host's queues, and each for its user."""

    __slots__ = ("_by_user", "count")

    def __init__(self, by_user: UserTally) -> None:
        self.count = 0
        self._by_user = by_user

    def added(self, user: str) -> None:
        """Count a consumer in."""
        self.count += 1
        self._by_user.added(user)

    def removed(self, user: str) -> None:
        """Count a consumer out."""
        self.count -= 1
        self._by_user.removed(user)


def without_limits() -> UserTallies:
    """Return tallies of users without limits."""
    return UserTallies(lambda user: {})
