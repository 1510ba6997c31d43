"""All routes of the API."""

from typing import Final

from gateway.management.http.routes import Endpoint
from gateway.management.openapi.route import with_document
from gateway.management.resources import (
    access_answers,
    aliveness_test,
    archives,
    audit,
    bindings,
    channels,
    cluster_name,
    connections,
    consumers,
    definitions,
    delayed,
    deprecated_features,
    exchanges,
    explain,
    feature_flags,
    federation_links,
    health,
    live,
    maintenance,
    message_traces,
    mqtt,
    node_limits,
    nodes,
    one_node,
    overview,
    parameters,
    permissions,
    pipeline,
    pipeline_sink,
    plugin_services,
    plugins,
    policies,
    queues,
    quorum_queues,
    settings,
    shovels,
    store,
    streams,
    super_streams,
    topic_permissions,
    user_limits,
    users,
    vhost_limits,
    vhosts,
    whoami,
)

_NOUNS: Final = (
    overview, whoami, cluster_name, nodes, definitions, vhosts, vhost_limits, users, user_limits, permissions,
    topic_permissions, exchanges, queues, delayed, streams, super_streams, archives, bindings, connections, channels,
    consumers, policies, parameters, aliveness_test, health, feature_flags, mqtt, pipeline, pipeline_sink, one_node,
    store, shovels, federation_links, explain, message_traces, plugins, plugin_services,
    access_answers,
    settings, maintenance, live,
    quorum_queues, deprecated_features, node_limits,
    audit,
)  # fmt: skip

ROUTES: Final[tuple[Endpoint, ...]] = with_document([route for noun in _NOUNS for route in noun.routes])
