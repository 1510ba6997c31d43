"""The end of a virtual host that was deleted: without reference cycles, it is freed with its last user.

Objects that have lived for some seconds are frozen (``gateway.node.garbage_collector``): no collection finds their
cycles, so each deleted virtual host would stay in memory.
"""

from typing import TYPE_CHECKING

from gateway.kernel.sessions.host import DepartedHost

if TYPE_CHECKING:
    from gateway.kernel.vhosts.virtual_host import VirtualHost


def dissolve(vhost: "VirtualHost") -> None:
    """Break the reference cycles of a virtual host whose contents were deleted.

    Connections that end refer to it for some time; what they close is gone already.
    """
    vhost.tracing = None
    vhost.archives.on_change = lambda: None
    vhost.bindings.release()
    vhost.exchanges.release()
    vhost.interception.release()
    vhost.policy_applier.release()
    vhost.keeping.release()
    vhost.retained.release()
    vhost.wills.release()
    vhost.wide_publishing.release()
    vhost.sessions.release(DepartedHost(vhost.name))
