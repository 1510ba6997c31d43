"""One call of a resource: the request, its user, and the user's access."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from weakref import WeakMethod

from gateway.access import Permissions, Principal
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import NotAllowed
from gateway.kernel.messages.origin import Origin
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.cluster_state import ClusterState
from gateway.management.context import ApiContext
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import parse_object
from gateway.management.http.errors import HttpError, bad_request, forbidden, missing, unknown_vhost
from gateway.management.http.routes import Fields
from gateway.management.node_control import NodeControl
from gateway.management.statistics.history import Trend, spans_of
from gateway.management.statistics.subjects import Key


class Call:
    """A request of an authenticated user. ``query`` is the part of the URL after the question mark.

    ``audit_details`` go to its entry in the audit record.
    ``values`` returns all values of a repeated field of the query.
    """

    def __init__(
        self,
        context: ApiContext,
        principal: Principal,
        query: Mapping[str, str],
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        peer_host: str = "",
        is_secure: bool = False,
    ) -> None:
        """Initialise the call. :raises HttpError: if the parameters for samples are invalid."""
        self.context = context
        self.principal = principal
        self.query = query
        self.content = content
        self.headers = headers or {}
        self.peer_host = peer_host
        self.is_secure = is_secure
        self.audit_details: Fields = {}
        self._recording: WeakMethod[Callable[[], None]] | None = None
        self.values: Callable[[str], Sequence[str]] = lambda name: [query[name]] if name in query else []
        self._spans = spans_of(query)

    def record_by(self, finish: Callable[[], None]) -> None:
        """Set the method that makes the entry in the audit record; its object refers to the call, and is not kept."""
        self._recording = WeakMethod(finish)

    @property
    def changed(self) -> Callable[[], None]:
        """Return the function that makes the entry in the audit record; the client may have disconnected.

        A resource that calls it in a later turn gets it in the first one, and keeps it.
        """
        finish = None if self._recording is None else self._recording()
        return _no_entry if finish is None else finish

    @property
    def broker(self) -> Broker:
        """The broker of the context."""
        return self.context.broker

    @cached_property
    def cluster(self) -> ClusterState | None:
        """The state of the cluster at the first look; ``None`` for a node that runs alone."""
        return self.context.cluster()

    @property
    def origin(self) -> Origin:
        """The origin of messages that the request publishes or fetches."""
        return Origin("", 0, self.principal.name, "HTTP", grant=self.principal.grant)

    @property
    def fields(self) -> Fields:
        """The body as a JSON object. :raises HttpError: if it is not one."""
        return parse_object(self.content)

    @property
    def control(self) -> NodeControl:
        """The control of the node. :raises HttpError: if it cannot be controlled."""
        if self.context.control is None:
            raise bad_request("this node cannot be controlled over the API")
        return self.context.control

    def is_set(self, flag: str) -> bool:
        """Return whether a flag of the query is ``true``."""
        return self.query.get(flag) == "true"

    @property
    def shows_secrets(self) -> bool:
        """Whether the answer has the passwords in URIs: ``?secrets=true`` of an administrator, or the setting.

        :raises HttpError: if the query asks for them and the user is no administrator.
        """
        if self.is_set("secrets"):
            self.require(AccessLevel.ADMINISTRATOR)
            return True
        return self.context.shows_secrets

    def trend(self, key: Key) -> Trend:
        """Return the rates of a subject, with the samples that the query requests."""
        return self.context.statistics.trend(key, self._spans)

    # Levels

    def may(self, level: AccessLevel) -> bool:
        """Return whether the user's tags grant an access level."""
        return level.refusal(self.principal.tags) is None

    def require(self, level: AccessLevel) -> None:
        """Require an access level. :raises HttpError: if the user's tags do not grant it."""
        if (refusal := level.refusal(self.principal.tags)) is not None:
            raise refusal

    # Virtual hosts

    def vhost(self, name: str) -> VirtualHost:
        """Return a virtual host that the user may see. :raises HttpError: if it does not exist or access is refused."""
        vhost = self.broker.vhost_by_name.get(name)
        if vhost is None:
            raise missing()
        if not self.may_see(vhost):
            raise forbidden("User not authorised to access virtual host")
        return vhost

    def writable_vhost(self, name: str) -> VirtualHost:
        """Return a virtual host that the user may access, for a change. :raises HttpError: as ``vhost`` does."""
        vhost = self.broker.vhost_by_name.get(name)
        if vhost is None:
            raise unknown_vhost()
        self.permissions(vhost)
        return vhost

    def accessible_vhost(self, name: str) -> VirtualHost:
        """Return a virtual host that the user may access, whatever its tags. :raises HttpError: as ``vhost`` does."""
        vhost = self.broker.vhost_by_name.get(name)
        if vhost is None:
            raise HttpError(404, "not_found", f"no vhost '{name}'")
        self.permissions(vhost)
        return vhost

    def exists(self, vhost: str) -> bool:
        """Return whether a virtual host exists, here or in another cell of the cluster."""
        cells = self.context.cells
        return vhost in self.broker.vhost_by_name or (cells is not None and cells.cell_of(vhost) is not None)

    def visible_vhosts(self) -> list[VirtualHost]:
        """Return the virtual hosts that the user may see: all for monitoring users, else those with permissions."""
        return [vhost for _, vhost in sorted(self.broker.vhost_by_name.items()) if self.may_see(vhost)]

    def may_see(self, vhost: VirtualHost) -> bool:
        """Return whether the user may see a virtual host."""
        if self.may(AccessLevel.MONITORING):
            return True
        try:
            self.permissions(vhost)
        except HttpError:
            return False
        return True

    def may_enter(self, vhost: str) -> bool:
        """Return whether the user has permissions in an existing virtual host, whatever its tags."""
        try:
            self.permissions(self.broker.vhost_by_name[vhost])
        except HttpError:
            return False
        return True

    def permissions(self, vhost: VirtualHost) -> Permissions:
        """Return the user's permissions in a virtual host. :raises HttpError: if access is refused."""
        try:
            return self.context.access_of(vhost.name).enter(self.principal, vhost.name)
        except NotAllowed:
            raise forbidden("User not authorised to access virtual host") from None

    def permissions_or_none(self, vhost: VirtualHost) -> Permissions | None:
        """Return the user's permissions in a virtual host; ``None`` if access is refused."""
        try:
            return self.permissions(vhost)
        except HttpError:
            return None


def _no_entry() -> None:
    """Make no entry: the request changes nothing that the audit record keeps."""
