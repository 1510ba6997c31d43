"""A cache of the answers of an authorizer, and of the decisions of the permissions that it returns."""

from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from gateway.api import Authorizer, Operation, Permissions, Principal
from gateway_auth.cache.answers import AnswerCounts, KeptAnswers
from gateway_auth.cache.settings import CacheSettings

Decisions: TypeAlias = Callable[[Hashable, Callable[[], bool]], bool]
"""Returns a kept decision by its key, or the one of the call."""


class CachedPermissions(Permissions):
    """Repeats the decisions of other permissions."""

    __slots__ = ("_asked", "_decided", "_who")

    def __init__(self, asked: Permissions, who: Hashable, decided: Decisions) -> None:
        super().__init__(asked.user, asked.vhost, "", "", "")
        self._asked = asked
        self._who = who
        self._decided = decided

    @property
    def asks_elsewhere(self) -> bool:
        """Whether the methods may raise ``PermissionUnknown``."""
        return self._asked.asks_elsewhere

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        """Whether the operation is allowed on a resource."""
        key = self._who, operation, name, kind
        return self._decided(key, lambda: self._asked.may(operation, name, kind))

    @property
    def restricts_topics(self) -> bool:
        """Whether routing keys are restricted."""
        return self._asked.restricts_topics

    def may_use_topic(
        self,
        operation: Operation,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a routing key may be used."""
        key = self._who, operation, exchange, routing_key, tuple(variables.items())
        return self._decided(key, lambda: self._asked.may_use_topic(operation, exchange, routing_key, variables))

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether all routing keys may be used."""
        key = self._who, operation, exchange
        return self._decided(key, lambda: self._asked.may_use_every_topic(operation, exchange))


class CachedAuthorizer:
    """Repeats the answers of another authorizer, until it reports changed permissions.

    An answer that is awaited is not kept. Permissions that came with the login, such as a token's, are not kept either:
    they are known at once. ``now`` is in seconds.
    """

    def __init__(self, asked: Authorizer, settings: CacheSettings, now: Callable[[], float]) -> None:
        self._asked = asked
        self._settings = settings
        self._entered: KeptAnswers[Hashable, Permissions | None] = KeptAnswers(settings.max_entries, now)
        self._decisions: KeptAnswers[Hashable, bool] = KeptAnswers(settings.max_entries, now)

    @property
    def counts(self) -> AnswerCounts:
        """The numbers of answers about virtual hosts and about permissions."""
        entered, decisions = self._entered.counts, self._decisions.counts
        return AnswerCounts(
            entered.kept + decisions.kept, entered.hits + decisions.hits, entered.misses + decisions.misses
        )

    def permissions_changed(self) -> None:
        """Drop all answers."""
        self._entered.clear()
        self._decisions.clear()

    def forget(self) -> None:
        """Drop all answers, and those that the other authorizer keeps itself."""
        self.permissions_changed()
        if callable(forget := getattr(self._asked, "forget", None)):
            forget()

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions. :raises PermissionUnknown: while the other authorizer awaits them."""
        if principal.grant is not None:
            return self._asked.permissions(principal, vhost)
        who = principal.name, principal.tags, principal.peer_host, principal.client_id, vhost
        if (kept := self._entered.find(who)) is not None:
            return kept.answer
        found = self._asked.permissions(principal, vhost)
        if found is None:
            self._entered.keep(who, None, self._settings.refusal_ttl_s)
            return None
        if not isinstance(found, Permissions):
            return found  # the broker reports it as a fault of the other plugin
        cached = CachedPermissions(found, who, self._decided)
        self._entered.keep(who, cached, self._settings.ttl_s)
        return cached

    def _decided(self, key: Hashable, decide: Callable[[], bool]) -> bool:
        if (kept := self._decisions.find(key)) is not None:
            return kept.answer
        is_allowed = decide()
        self._decisions.keep(key, is_allowed, self._settings.ttl_s if is_allowed else self._settings.refusal_ttl_s)
        return is_allowed
