"""An authorizer and permissions whose decisions another server takes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from gateway.api import Operation, Permissions, Principal
from gateway_auth.asked.questions import Question, ResourceKind
from gateway_auth.asked.verdicts import Verdicts

DEFAULT_EXCHANGE: Final = "amq.default"
"""The name of the default exchange in questions, as in RabbitMQ."""

EVERY_TOPIC: Final = "#"
"""The routing key in the question whether all routing keys are permitted."""

_PERMISSIONS: Final = {Operation.CONFIGURE: "configure", Operation.WRITE: "write", Operation.READ: "read"}


class AskedPermissions(Permissions):
    """The permissions of one principal in one virtual host; each is asked for when it is first needed."""

    __slots__ = ("_has_topics", "_tags", "_verdicts")

    def __init__(self, principal: Principal, vhost: str, verdicts: Verdicts, has_topics: bool) -> None:
        super().__init__(principal.name, vhost, "", "", "")
        self._tags = tuple(sorted(principal.tags))
        self._verdicts = verdicts
        self._has_topics = has_topics

    @property
    def asks_elsewhere(self) -> bool:
        """Whether answers may be awaited: yes."""
        return True

    def may(self, operation: Operation, name: str, kind: str = "exchange") -> bool:
        """Whether the operation is allowed on a resource. :raises PermissionUnknown: while the answer is awaited."""
        resource, permission = ResourceKind(kind), _PERMISSIONS[operation]
        asked = Question(self.user, self._tags, self.vhost, resource, name or DEFAULT_EXCHANGE, permission)
        return self._verdicts.allows(asked)

    @property
    def restricts_topics(self) -> bool:
        """Whether the server is asked about topics."""
        return self._has_topics

    def may_use_topic(
        self,
        operation: Operation,
        exchange: str,
        routing_key: str,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> bool:
        """Whether a routing key may be used. :raises PermissionUnknown: while the answer is awaited."""
        if not self._has_topics:
            return True
        client_id, permission = variables.get("client_id", ""), _PERMISSIONS[operation]
        asked = Question(
            self.user, self._tags, self.vhost, ResourceKind.TOPIC, exchange, permission, routing_key, client_id
        )
        return self._verdicts.allows(asked)

    def may_use_every_topic(self, operation: Operation, exchange: str) -> bool:
        """Whether all routing keys may be used: whether the key ``#`` may."""
        return self.may_use_topic(operation, exchange, EVERY_TOPIC)


class AskedAuthorizer:
    """Asks a server whether a user may use the virtual host, then for each permission.

    ``disconnect`` releases the connections to the server.
    """

    def __init__(self, verdicts: Verdicts, *, has_topics: bool, disconnect: Callable[[], None] = lambda: None) -> None:
        self._verdicts = verdicts
        self._has_topics = has_topics
        self._disconnect = disconnect

    def forget(self) -> None:
        """Drop all answers."""
        self._verdicts.forget()

    def close(self) -> None:
        """End the timer and the connections."""
        self._verdicts.close()
        self._disconnect()

    def permissions(self, principal: Principal, vhost: str) -> Permissions | None:
        """Return the permissions; ``None`` if the server refuses the virtual host, or the user brought its own.

        :raises PermissionUnknown: while the answer is awaited.
        """
        if principal.grant is not None:
            return None
        tags = tuple(sorted(principal.tags))
        asked = Question(principal.name, tags, vhost, ResourceKind.VHOST, vhost, peer_host=principal.peer_host)
        if not self._verdicts.allows(asked):
            return None
        return AskedPermissions(principal, vhost, self._verdicts, self._has_topics)
