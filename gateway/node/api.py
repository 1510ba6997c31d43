"""The services of a node that its HTTP API uses."""

from collections.abc import Callable
from functools import partial

from gateway.config import Settings
from gateway.management.context import ApiContext
from gateway.management.http.login_sessions import LoginSessions
from gateway.management.node_control import NodeControl
from gateway.node.access import login_counts
from gateway.node.http import http_cross_origin_policy, http_limits
from gateway.node.parts import NodeParts
from gateway.node.pipeline import pipeline_context
from gateway.node.plugin_control import NodePlugins
from gateway.node.publish_addresses import PublishAddressesOf


def api_context(parts: NodeParts, settings: Settings, live: Callable[[], Settings], control: NodeControl) -> ApiContext:
    """Return the context of the resources. ``live`` returns the settings as they are after reloads."""
    broker, access, topics = parts.broker, parts.vhost_access, parts.mqtt.context
    return ApiContext(
        broker=broker,
        login=access.login_access(),
        passwords=parts.passwords,
        login_counts=partial(login_counts, parts.throttle, parts.hashing),
        access_of=access.access_of,
        statistics=parts.statistics,
        topics_of=topics.mapping_of,
        publish_addresses=PublishAddressesOf(topics, lambda: live().stomp),
        login_sessions=LoginSessions(broker.directory, broker.clock, settings.management.session_timeout_s),
        trace_files=parts.trace_files,
        depth_files=parts.depth_files,
        records_depths=parts.depths is not None,
        pipeline=pipeline_context(settings, parts),
        touch=parts.turn.touch,
        addresses=lambda: parts.ports.listeners.addresses,
        memory_limit=parts.watermarks.memory_limit,
        disk_free_limit=parts.watermarks.disk_free_limit,
        data=settings.data,
        started_at_ms=broker.clock.wall_ms(),
        certificates=settings.tls.certificates,
        max_message_size=settings.amqp.max_message_size,
        shows_secrets=settings.management.show_secrets,
        http=http_limits(settings),
        cross_origin_policy=http_cross_origin_policy(settings),
        reactor=parts.reactor,
        slices=parts.slices,
        collections=parts.collector.info,
        turns=parts.turn_watch.shown,
        store_info=parts.store_files.info,
        compact_store=parts.store_files.compact,
        inert_plugins=access.inert_plugins,
        plugins=NodePlugins(parts.live_plugins, access, parts.plugin_faults),
        services_of=lambda vhost: access.view_in_use(vhost).services,
        bridges=parts.bridges,
        cluster=parts.host.cluster,
        cluster_control=parts.host.cluster_control,
        control=control,
        log_place=parts.host.log_place,
        cells=None if parts.host.place is None else parts.host.place.api,
    )
