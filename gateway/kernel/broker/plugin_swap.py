"""The replacement of the plugins of one virtual host while it runs."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from gateway.kernel.errors import NotAllowed, PreconditionFailed
from gateway.kernel.messages.bounds import require_arguments
from gateway.kernel.vhosts.exchange_swap import ExchangeSwap

if TYPE_CHECKING:
    from gateway.kernel.broker.broker import Broker
    from gateway.kernel.messages.message import Value
    from gateway.kernel.vhosts.plugins import PluginParts, VhostPlugins
    from gateway.kernel.vhosts.virtual_host import VirtualHost


def swapping_plugins(
    broker: "Broker",
    vhost: "VirtualHost",
    view: "VhostPlugins",
    parts: "PluginParts",
    recorded: "Mapping[str, Value]",
    *,
    is_changed: Callable[[str], bool],
    may_become_inert: bool,
) -> Iterator[None]:
    """Return the steps that put the plugins of ``view`` in use; all take effect at the end of the last one.

    Until then the virtual host works with its former plugins, and keeps them if a step raises.

    :raises Refused: if a new exchange type refuses an exchange or a binding, or none is left for an exchange, unless it
        ``may_become_inert``; and if a new queue feature refuses the setting of a queue.
    :raises NotAllowed: if the virtual host is deleted meanwhile.
    """
    if vhost.exchanges.recent is not None:
        raise PreconditionFailed(f"another change of the plugins of vhost '{vhost.name}' is in progress")
    require_arguments(f"vhost '{vhost.name}'", recorded)
    swap = ExchangeSwap(
        vhost.exchanges, vhost.bindings, view.exchange_types, is_changed, may_become_inert=may_become_inert
    )
    try:
        yield from swap.steps()
        if not may_become_inert:
            queues = list(vhost.queue_by_name.values())
            yield from vhost.queue_features.checking(view.queue_features, queues)
        if broker.vhost(vhost.name) is not vhost:
            raise NotAllowed(f"vhost {vhost.name} not found")
    except BaseException:  # also of plugins, and when the steps are abandoned
        swap.abandon()
        raise
    swap.commit()
    broker.adopt_plugins(vhost, recorded, view, parts)
