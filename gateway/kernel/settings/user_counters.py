"""Counters and limits of queues, bindings and consumers per user, for all virtual hosts together.

A queue and a binding count for the user that created them, which their records store; a consumer for the user of its
connection. Imported definitions count for no user.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.limits import limit_of

#: Returns the limits of a user.
LimitsOf: TypeAlias = Callable[[str], Mapping[str, Value]]

#: Returns how many objects a user has in other cells of a cluster, by the name of the limit and the user.
Elsewhere: TypeAlias = Callable[[str, str], int]


@dataclass(frozen=True, slots=True)
class UserRules:
    """The node's limits for users without limits of their own; 0 means no limit."""

    max_queues: int = 0
    max_bindings: int = 0
    max_consumers: int = 0


def _nothing(limit: str, user: str) -> int:
    return 0


class UserTally:
    """Counts one kind of object per user. ``what`` is for example ``queue``; then the limit is ``max-queues``."""

    __slots__ = ("_count_by_user", "_elsewhere", "_limit_name", "_limits_of", "_what", "default")

    def __init__(self, what: str, limits_of: LimitsOf, elsewhere: Elsewhere) -> None:
        self.default = 0
        self._elsewhere = elsewhere
        self._what = what
        self._limit_name = f"max-{what}s"
        self._limits_of = limits_of
        self._count_by_user: Counter[str] = Counter()

    def count_of(self, user: str) -> int:
        """Return the count of a user."""
        return self._count_by_user[user]

    def users(self) -> list[str]:
        """Return the users that have objects."""
        return list(self._count_by_user)

    def added(self, user: str) -> None:
        """Count one more; an empty name is no user."""
        if user:
            self._count_by_user[user] += 1

    def removed(self, user: str) -> None:
        """Count one less."""
        if user:
            self._count_by_user[user] -= 1
            if not self._count_by_user[user]:  # keep no entries of users without objects
                del self._count_by_user[user]

    def require_room(self, user: str, doing: str) -> None:
        """Check the user's limit. ``doing`` is for example ``cannot bind``. :raises PreconditionFailed: if reached."""
        if not user:
            return
        limit = limit_of(self._limits_of(user), self._limit_name, self.default)
        if limit is not None and self._count_by_user[user] + self._elsewhere(self._limit_name, user) >= limit:
            raise PreconditionFailed(f"{doing}: {self._what} limit of user '{user}' ({limit}) is reached")


class UserTallies:
    """The counters of one node. ``elsewhere`` returns what other cells of a cluster have counted."""

    def __init__(self, limits_of: LimitsOf) -> None:
        self.elsewhere: Elsewhere = _nothing
        self.queues = UserTally("queue", limits_of, self._counted_elsewhere)
        self.bindings = UserTally("binding", limits_of, self._counted_elsewhere)
        self.consumers = UserTally("consumer", limits_of, self._counted_elsewhere)

    def _counted_elsewhere(self, limit: str, user: str) -> int:
        return self.elsewhere(limit, user)

    def apply(self, rules: UserRules) -> None:
        """Set the node's limits; existing objects stay."""
        self.queues.default = rules.max_queues
        self.bindings.default = rules.max_bindings
        self.consumers.default = rules.max_consumers


class ConsumerTally:
    """Counts the consumers of a virtual host's queues, in total and per user."""

    __slots__ = ("_by_user", "count")

    def __init__(self, by_user: UserTally) -> None:
        self.count = 0
        self._by_user = by_user

    def added(self, user: str) -> None:
        """Count one more consumer."""
        self.count += 1
        self._by_user.added(user)

    def removed(self, user: str) -> None:
        """Count one less consumer."""
        self.count -= 1
        self._by_user.removed(user)
