"""Conversion of ``rabbitmq.conf``, in the format since RabbitMQ 3.7: one ``key = value`` in each line."""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from gateway.cli.migrate.backends import Backends
from gateway.cli.migrate.ldap_queries import LdapQueries
from gateway.cli.migrate.target import Tally, Target
from gateway.cli.migrate.values import boolean, endpoint, seconds_of_ms, size, whole

Convert: TypeAlias = Callable[[str], object]


def _string(value: str) -> object:
    return value


def _watermark(value: str) -> object:
    return float(value)


#: Keys with one setting, and the conversion of the value.
_SIMPLE: Final[dict[str, tuple[str, Convert]]] = {
    "default_user": ("default_user", _string),
    "default_pass": ("default_pass", _string),
    "default_vhost": ("default_vhost", _string),
    "default_permissions.configure": ("default_permissions.configure", _string),
    "default_permissions.write": ("default_permissions.write", _string),
    "default_permissions.read": ("default_permissions.read", _string),
    "vm_memory_high_watermark": ("memory_high_watermark", _watermark),
    "vm_memory_high_watermark.relative": ("memory_high_watermark", _watermark),
    "vm_memory_high_watermark.absolute": ("memory_high_watermark", size),
    "disk_free_limit": ("disk_free_limit", size),
    "disk_free_limit.absolute": ("disk_free_limit", size),
    "heartbeat": ("amqp.heartbeat_s", whole),
    "frame_max": ("amqp.frame_max", whole),
    "channel_max": ("amqp.channel_max", whole),
    "max_message_size": ("amqp.max_message_size", whole),
    "handshake_timeout": ("amqp.login_timeout_s", seconds_of_ms),
    "proxy_protocol": ("amqp.proxy_protocol", boolean),
    "consumer_timeout": ("queues.consumer_timeout_ms", whole),
    "default_queue_type": ("queues.default_queue_type", _string),
    "channel_max_per_node": ("limits.channels_per_user", whole),
    "consumer_max_per_channel": ("limits.consumers_per_channel", whole),
    "load_definitions": ("load_definitions", _string),
    "definitions.local.path": ("load_definitions", _string),
    "management.load_definitions": ("load_definitions", _string),
    "ssl_options.certfile": ("tls.certificate", _string),
    "ssl_options.keyfile": ("tls.key", _string),
    "ssl_options.cacertfile": ("tls.ca", _string),
    "management.tcp.port": ("management.port", whole),
    "management.listener.port": ("management.port", whole),
    "management.ssl.port": ("management_tls.port", whole),
    "management.cors.max_age": ("management.cors_max_age_s", whole),
    "mqtt.vhost": ("mqtt.vhost", _string),
    "mqtt.exchange": ("mqtt.exchange", _string),
    "mqtt.prefetch": ("mqtt.prefetch", whole),
    "mqtt.max_session_expiry_interval_seconds": ("mqtt.max_session_expiry_s", whole),
    "mqtt.subscription_ttl": ("mqtt.max_session_expiry_s", seconds_of_ms),
    "mqtt.max_packet_size_unauthenticated": ("mqtt.max_packet_size_unauthenticated", whole),
    "mqtt.max_packet_size_authenticated": ("mqtt.max_packet_size", whole),
    "mqtt.topic_alias_maximum": ("mqtt.topic_alias_max", whole),
    "mqtt.proxy_protocol": ("mqtt.proxy_protocol", boolean),
    "mqtt.default_user": ("mqtt.anonymous_user", _string),
    "anonymous_login_user": ("mqtt.anonymous_user", _string),
    "web_mqtt.tcp.port": ("web_mqtt.port", whole),
    "web_mqtt.ssl.port": ("web_mqtts.port", whole),
    "web_mqtt.ws_path": ("web_mqtt.path", _string),
    "web_mqtt.proxy_protocol": ("web_mqtt.proxy_protocol", boolean),
    "stomp.vhost": ("stomp.vhost", _string),
    "stomp.default_vhost": ("stomp.vhost", _string),
    "stomp.default_user": ("stomp.default_user", _string),
    "stomp.default_pass": ("stomp.default_passcode", _string),
    "stomp.implicit_connect": ("stomp.implicit_connect", boolean),
    "stomp.ssl_cert_login": ("stomp.certificate_login", boolean),
    "stomp.proxy_protocol": ("stomp.proxy_protocol", boolean),
    "stomp.default_topic_exchange": ("stomp.default_topic_exchange", _string),
    "stomp.default_nack_requeue": ("stomp.default_nack_requeue", boolean),
    "stomp.max_frame_size": ("stomp.max_frame_size", whole),
    "web_stomp.tcp.port": ("web_stomp.port", whole),
    "web_stomp.ssl.port": ("web_stomps.port", whole),
    "web_stomp.ws_path": ("web_stomp.path", _string),
    "web_stomp.proxy_protocol": ("web_stomp.proxy_protocol", boolean),
    "log.file": ("log.file", _string),
    "nodename": ("node_name", _string),
    "deprecated_features.permit.transient_nonexcl_queues": (
        "deprecated_features.permit_transient_nonexcl_queues",
        boolean,
    ),
}  # fmt: skip

#: Prefixes of the keys of listeners, and the section of the port.
_LISTENERS: Final = {
    "listeners.tcp": "amqp",
    "listeners.ssl": "amqps",
    "mqtt.listeners.tcp": "mqtt",
    "mqtt.listeners.ssl": "mqtts",
    "stomp.listeners.tcp": "stomp",
    "stomp.listeners.ssl": "stomps",
}

_LEVELS: Final = {"debug": "debug", "info": "info", "notice": "info", "warning": "warning", "error": "error"}

#: Reasons for families of keys that have no setting, by their beginning.
_REASONS: Final = (
    ("cluster_", "this broker is one node"),
    ("raft.", "this broker is one node"),
    ("quorum_queue.", "this broker is one node"),
    ("queue_master_locator", "this broker is one node"),
    ("queue_leader_locator", "this broker is one node"),
    ("net_ticktime", "this broker is one node"),
    ("mirroring_", "this broker is one node"),
    ("auth_oauth2.", "auth-oauth2 has no such setting, see docs/access-servers.md"),
    ("auth_http.", "auth-http has no such setting, see docs/access-servers.md"),
    ("auth_mechanisms.", "mechanisms are those of the enabled plugins, see docs/access.md"),
    ("ssl_options.", "see [tls] in docs/configuration.md"),
    ("management.ssl.", "all listeners share the certificate of [tls]"),
    ("tcp_listen_options.", "the options of sockets are fixed"),
    ("collect_statistics", "statistics have no setting"),
    ("management.", "see [management] in docs/configuration.md"),
    ("prometheus.", "metrics have a listener of their own, see docs/configuration.md"),
    ("mqtt.", "see [mqtt] in docs/configuration.md"),
    ("stomp.", "see [stomp] in docs/configuration.md"),
    ("log.", "see [log] in docs/configuration.md"),
    ("disk_free_limit.relative", "the limit is an amount: disk_free_limit"),
    ("vm_memory_high_watermark_paging_ratio", "paging has no setting"),
    ("shovel.", "shovels are parameters, see docs/bridges.md"),
)


#: The first line of a value of several lines, which ends with the next three quotation marks.
_BLOCK_START: Final = re.compile(r"=\s*'''(?!.*''')")


class RabbitmqFile:
    """Converts the lines of one file."""

    def __init__(self, target: Target) -> None:
        self.tally = Tally()
        self.backends = Backends(target, self.tally)
        self.ldap_queries = LdapQueries(target, self.backends, self.tally)
        self._target = target
        self._verify = ""
        self._fails_without = False

    def convert(self, text: str) -> None:
        """Convert a file."""
        lines = enumerate(text.splitlines(), 1)
        for number, raw in lines:
            line = raw.partition("#")[0].strip() if not re.search(r"=\s*.*['\"].*#", raw) else raw.strip()
            if not line or line.startswith(("#", "%")):
                continue
            if re.search(_BLOCK_START, line):
                line = "\n".join([line, *_rest_of_block(lines)])
            self._convert_line(line, number)
        self.finish()

    def _convert_line(self, line: str, number: int) -> None:
        key, equals, value = (part.strip() for part in line.partition("="))
        if not equals:
            self._target.leave(f"line {number}: {line}", "it is not KEY = VALUE", self.tally)
            return
        self.convert_key(key, value.strip("'\"").strip(), " ".join(line.split()))

    def convert_key(self, key: str, value: str, line: str) -> None:
        """Convert a key; ``line`` is shown in the comment if it has no setting."""
        try:
            self._convert_key(key, value, line)
        except ValueError as error:
            self._target.leave(line, str(error), self.tally)

    def _convert_key(self, key: str, value: str, line: str) -> None:
        target, tally = self._target, self.tally
        if key in _SIMPLE:
            setting, convert = _SIMPLE[key]
            target.carry(setting, convert(value), line, tally)
        elif (prefix := next((each for each in _LISTENERS if key == each or key.startswith(f"{each}.")), "")) != "":
            self._listener(_LISTENERS[prefix], value, line)
        elif key == "management.tcp.ip" or key.endswith(".ip"):
            raise ValueError("all listeners have the same address, bind")
        elif key in ("ssl_options.verify", "ssl_options.fail_if_no_peer_cert"):
            self._client_certificates(key, value, line)
        elif key.startswith("ssl_options.versions."):
            target.carry("tls.min_version", _lowest_version(value, target), line, tally)
        elif key.startswith("default_user_tags."):
            self._listed("default_user_tags", key, value)
        elif key.startswith("loopback_users"):
            self._loopback(key, value, line)
        elif key in ("log.console.level", "log.file.level", "log.level") and value in _LEVELS:
            target.carry("log.level", _LEVELS[value], line, tally)
        elif key == "log.file.formatter" or key == "log.console.formatter":
            target.carry("log.format", "json" if value == "json" else "text", line, tally)
        elif key.startswith("management.cors.allow_origins."):
            self._listed("management.cors_allow_origins", key, "true", value)
        elif key == "mqtt.allow_anonymous" and not boolean(value):
            target.carry("mqtt.anonymous_user", "", line, tally)
        elif key == "mqtt.allow_anonymous":
            target.carry("mqtt.anonymous_from_network", True, line, tally)
        elif not self.ldap_queries.convert(key, value) and not self.backends.convert(key, value, line):
            reason = next((why for beginning, why in _REASONS if key.startswith(beginning)), "it has no setting here")
            target.leave(line, reason, tally)

    def _listener(self, section: str, value: str, line: str) -> None:
        if value == "none":
            self._target.carry(f"{section}.port", "off", line, self.tally)
            return
        address, port = endpoint(value)
        if address not in ("", "0.0.0.0", "::", self._target.settings.get("bind", address)):
            raise ValueError("all listeners have the same address, bind")
        if self._target.settings.get(f"{section}.port", port) != port:
            raise ValueError(f"{section}.port is set already")
        if address not in ("", "0.0.0.0", "::"):
            self._target.settings["bind"] = address
            self._target.origins["bind"] = line, self.tally
        self._target.carry(f"{section}.port", port, line, self.tally)

    def _client_certificates(self, key: str, value: str, line: str) -> None:
        self.tally.carried += 1
        if key.endswith("verify"):
            self._verify = value
        else:
            self._fails_without = boolean(value)
        self._target.origins["tls.verify"] = line, self.tally

    def _listed(self, setting: str, key: str, is_set: str, name: str = "") -> None:
        listed = self._target.settings.setdefault(setting, [])
        assert isinstance(listed, list)
        if boolean(is_set):
            listed.append(name or key.rpartition(".")[2])
        self._target.origins[setting] = key, self.tally
        self.tally.carried += 1

    def _loopback(self, key: str, value: str, line: str) -> None:
        name = key.partition(".")[2]
        listed = self._target.settings.setdefault("loopback_users", ["guest"])
        assert isinstance(listed, list)
        if key == "loopback_users" and value == "none":
            listed.clear()
        elif name and boolean(value) and name not in listed:
            listed.append(name)
        elif name and not boolean(value) and name in listed:
            listed.remove(name)
        self._target.origins["loopback_users"] = line, self.tally
        self.tally.carried += 1

    def finish(self) -> None:
        """Add what several lines decide together."""
        target = self._target
        if self._verify or self._fails_without:
            verify = "off" if self._verify != "verify_peer" else "required" if self._fails_without else "optional"
            target.settings["tls.verify"] = verify
        self.backends.finish()
        vhost = target.settings.get("default_vhost", "/")
        target.vhost = str(vhost)


def _lowest_version(value: str, target: Target) -> str:
    version = value.removeprefix("tlsv")
    if version not in ("1.2", "1.3"):
        raise ValueError("TLS 1.2 is the oldest version")
    known = target.settings.pop("tls.min_version", version)
    return min(version, str(known))


def _rest_of_block(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    """Yield the lines of a value until its closing quotation marks, which are included."""
    for _, line in lines:
        yield line
        if "'''" in line:
            return
