"""interceptor-routing-node: the header ``x-routed-by``, the name of the node that received the message.

As RabbitMQ's ``message_interceptors.incoming.set_header_routing_node``.
"""

from collections.abc import Sequence
from typing import Final

from gateway.api import Interceptor, PluginSettings, TracedVhost, hookimpl
from gateway_interceptors.stamps import Stamp, StampSettings

HEADER: Final = "x-routed-by"


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the setting ``overwrite``."""
    return StampSettings


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: StampSettings) -> Sequence[Interceptor]:
    """Offer the interceptor."""
    node = vhost.node
    return [Stamp(HEADER, lambda origin: node, overwrite=settings.overwrite)]
