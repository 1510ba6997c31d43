"""The deletion of virtual hosts, which takes several turns."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from gateway.kernel.clock import Background
from gateway.kernel.vhosts.virtual_host import VirtualHost

if TYPE_CHECKING:
    from gateway.kernel.broker.connections import Connections


class VhostDeletions:
    """Deletes the contents of virtual hosts in slices; the name of one is in use until its end.

    ``removing_settings`` returns the steps that remove the policies, parameters and permissions of a virtual host,
    ``forget`` removes the empty virtual host and its record.
    """

    def __init__(
        self,
        background: Background,
        connections: "Connections",
        removing_settings: Callable[[str], Iterator[None]],
        forget: Callable[[VirtualHost], None],
    ) -> None:
        self._background = background
        self._connections = connections
        self._removing_settings = removing_settings
        self._forget = forget
        self._names: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, vhost: VirtualHost) -> None:
        """Delete a virtual host with everything in it."""
        self._names.add(vhost.name)
        self._background.add(self._deleting(vhost))

    def _deleting(self, vhost: VirtualHost) -> Iterator[None]:
        """Delete the contents of a virtual host before its record, so that a restart after a crash can continue."""
        name = vhost.name
        yield from self._connections.force_closes(f"vhost '{name}' is deleted", lambda peer: peer.vhost_name == name)
        yield from vhost.wills.erasing()
        yield from vhost.sessions.ending_all()
        yield from vhost.sessions.groups.erasing()
        yield from vhost.retained.erasing()
        yield from vhost.producers.erasing()
        yield from vhost.batches.erasing()
        yield from vhost.queues.deleting_all()
        yield from vhost.exchanges.deleting_all()
        vhost.trace_table.set_enabled(False)
        yield from vhost.archives.closing_all()
        yield from self._removing_settings(name)
        self._forget(vhost)
        self._names.discard(name)
