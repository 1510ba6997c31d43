"""All routes of the API."""

from typing import Final

from gateway.management.http.routes import Endpoint
from gateway.management.openapi.route import with_document
from gateway.management.resources.access import (
    access_answers,
    permission_check,
    permissions,
    topic_permissions,
    user_limits,
    users,
    whoami,
)
from gateway.management.resources.clients import (
    channels,
    connections,
    consumers,
    federation_links,
    mqtt,
    protocols,
    shovels,
    stomp,
    web_sockets,
)
from gateway.management.resources.messages import (
    archive_files,
    archives,
    deduplication,
    delayed,
    explain,
    kept,
    message_traces,
    queue_depths,
    traces,
    workbench,
)
from gateway.management.resources.node import (
    aliveness_test,
    audit,
    cluster,
    cluster_name,
    deprecated_features,
    feature_flags,
    health,
    live,
    node_limits,
    nodes,
    one_node,
    overview,
    plugin_services,
    plugins,
    settings,
    stopping,
    store,
    switches,
    tls,
)
from gateway.management.resources.spark import pipeline, pipeline_runs, pipeline_sink
from gateway.management.resources.virtual_hosts import (
    bindings,
    definitions,
    definitions_plan,
    exchanges,
    parameters,
    policies,
    policy_preview,
    queues,
    quorum_queues,
    streams,
    super_streams,
    topology,
    vhost_limits,
    vhosts,
)

_NOUNS: Final = (
    overview, whoami, cluster, cluster_name, nodes, definitions, definitions_plan, vhosts, vhost_limits, users,
    user_limits, permissions, topic_permissions, exchanges, queues, delayed, kept, deduplication, streams,
    super_streams, archives, archive_files, queue_depths, bindings, connections, channels, consumers,
    policies, parameters, aliveness_test, health, feature_flags, mqtt, pipeline, pipeline_runs,
    pipeline_sink, one_node, store, shovels, federation_links, explain, message_traces, plugins, plugin_services,
    access_answers,
    settings, switches, stopping, tls, live,
    quorum_queues, deprecated_features, node_limits, traces,
    permission_check, policy_preview, stomp, topology, web_sockets, protocols,
    audit, workbench,
)  # fmt: skip

ROUTES: Final[tuple[Endpoint, ...]] = with_document([route for noun in _NOUNS for route in noun.routes])
