"""The plugins that are part of the broker."""

from collections.abc import Mapping
from typing import Final

#: Plugin names with the modules that implement them.
BUILT_IN_MODULES: Final[Mapping[str, str]] = {
    "exchange-direct": "gateway_exchanges.direct",
    "exchange-fanout": "gateway_exchanges.fanout",
    "exchange-topic": "gateway_exchanges.topic",
    "exchange-headers": "gateway_exchanges.headers",
    "exchange-local-random": "gateway_exchanges.local_random",
    "exchange-random": "gateway_exchanges.random_binding",
    "exchange-consistent-hash": "gateway_exchanges.consistent_hash",
    "exchange-modulus-hash": "gateway_exchanges.modulus_hash",
    "exchange-rtopic": "gateway_exchanges.reverse_topic",
    "exchange-recent-history": "gateway_exchanges.recent_history",
    "exchange-lvc": "gateway_exchanges.last_value",
    "exchange-jms-topic": "gateway_exchanges.jms_topic",
    "exchange-super-stream": "gateway_exchanges.super_stream",
    "auth-internal": "gateway_auth.internal",
    "auth-certificate": "gateway_auth.certificate",
    "auth-scram": "gateway_auth.scram",
    "auth-http": "gateway_auth.http.plugin",
    "auth-oauth2": "gateway_auth.oauth.plugin",
    "auth-mosquitto": "gateway_auth.mosquitto.plugin",
    "event-exchange": "gateway_tracing.event_exchange",
    "auth-ldap": "gateway_auth.ldap.plugin",
    "auth-cache": "gateway_auth.cache.plugin",
    "log-exchange": "gateway_tracing.log_exchange",
    "tracing-firehose": "gateway_tracing.firehose",
    "tracing-json-lines": "gateway_tracing.json_lines",
    "tracing-opentelemetry": "gateway_tracing.open_telemetry",
    "interceptor-timestamp": "gateway_interceptors.timestamp",
    "interceptor-routing-node": "gateway_interceptors.routing_node",
    "interceptor-client-id": "gateway_interceptors.client_id",
    "interceptor-rewrite": "gateway_interceptors.rewrite",
    "interceptor-rate-limit": "gateway_interceptors.rate_limit",
    "interceptor-json-schema": "gateway_interceptors.validation.json_schema",
    "interceptor-avro": "gateway_interceptors.validation.avro",
    "interceptor-protobuf": "gateway_interceptors.validation.protobuf",
}

#: The plugins that every virtual host enables by default.
ALWAYS_ON: Final = (
    "exchange-direct",
    "exchange-fanout",
    "exchange-topic",
    "exchange-headers",
    "exchange-local-random",
    "exchange-random",
    "exchange-consistent-hash",
    "exchange-modulus-hash",
    "exchange-rtopic",
    "exchange-recent-history",
    "exchange-lvc",
    "exchange-jms-topic",
    "exchange-super-stream",
    "auth-internal",
    "auth-certificate",
    "auth-scram",
    "tracing-firehose",
)
