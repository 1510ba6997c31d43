"""Conversion of ``mosquitto.conf``: one ``option value`` in each line, and sections of listeners and bridges."""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.cli.migrate.mosquitto_bridge import bridge_comments
from gateway.cli.migrate.target import Tally, Target
from gateway.cli.migrate.values import boolean, whole

Convert: TypeAlias = Callable[[str], object]

_PLUGIN: Final = "auth-mosquitto"
_DAY_S: Final = 86400
_EXPIRY_UNITS: Final = {"h": 3600, "d": _DAY_S, "w": 7 * _DAY_S, "m": 30 * _DAY_S, "y": 365 * _DAY_S}


def _string(value: str) -> object:
    return value


def _expiry(value: str) -> object:
    unit = _EXPIRY_UNITS.get(value[-1:].lower())
    if unit is None:
        raise ValueError("it is not a number with h, d, w, m or y")
    return whole(value[:-1]) * unit


def _limited(value: str) -> object:
    number = whole(value)
    if number <= 0:
        raise ValueError("0 means no limit, which this setting does not have")
    return number


#: Options with one setting, and the conversion of the value.
_SIMPLE: Final[dict[str, tuple[str, Convert]]] = {
    "certfile": ("tls.certificate", _string),
    "keyfile": ("tls.key", _string),
    "cafile": ("tls.ca", _string),
    "max_packet_size": ("mqtt.max_packet_size", _limited),
    "message_size_limit": ("mqtt.max_packet_size", _limited),
    "max_inflight_messages": ("mqtt.max_inflight", _limited),
    "max_queued_messages": ("mqtt.session_max_messages", whole),
    "max_queued_bytes": ("mqtt.session_max_bytes", whole),
    "persistent_client_expiration": ("mqtt.max_session_expiry_s", _expiry),
    "max_keepalive": ("mqtt.keep_alive_max_s", whole),
    "max_topic_alias": ("mqtt.topic_alias_max", whole),
    "sys_interval": ("mqtt.sys_interval_s", whole),
    "memory_limit": ("memory_high_watermark", _limited),
    "max_connections": ("limits.connections_per_vhost", _limited),
    "global_max_connections": ("limits.connections_per_vhost", _limited),
}

_ON_PLUGIN: Final = {
    "password_file": "password_file",
    "acl_file": "acl_file",
    "plugin_opt_config_file": "dynamic_security_file",
}

_REASONS: Final = {
    "persistence_location": "the data directory is the setting data, or --data",
    "persistence_file": "the data directory is the setting data, or --data",
    "autosave_interval": "each message is on disk before it is confirmed",
    "autosave_on_changes": "each message is on disk before it is confirmed",
    "include_dir": "give the files of this directory on the command line too",
    "per_listener_settings": "all listeners have the same users and rules",
    "user": "the service manager decides on the user",
    "pid_file": "the service manager knows the process",
    "plugin": "enable the plugin that does the same, see docs/access-servers.md",
    "auth_plugin": "enable the plugin that does the same, see docs/access-servers.md",
    "psk_file": "TLS with pre-shared keys is not supported",
    "use_identity_as_username": "enable the plugin auth-certificate, see docs/access.md",
    "use_subject_as_username": "enable the plugin auth-certificate, see docs/access.md",
    "set_tcp_nodelay": "always so, without a setting",
    "queue_qos0_messages": "always so; mqtt.qos0_max_messages and mqtt.qos0_max_bytes limit them",
    "connection_messages": "see [log] in docs/configuration.md",
    "retain_available": "retained messages are always available",
    "websockets_log_level": "see [log] in docs/configuration.md",
    "log_type": "see [log] in docs/configuration.md",
}


class MosquittoFile:
    """Converts the lines of one file."""

    def __init__(self, target: Target) -> None:
        self.tally = Tally()
        self._target = target
        self._listener = ""
        self._port = 0
        self._has_certificate = False
        self._ports: dict[str, int] = {}
        self._allows_anonymous: bool | None = None
        self._requires_certificate = False
        self._bridge: dict[str, list[str]] = {}

    def convert(self, text: str) -> None:
        """Convert a file."""
        for raw in text.splitlines():
            line = raw.strip()
            if line and not line.startswith("#"):
                option, _, value = line.partition(" ")
                try:
                    self._convert_option(option, value.strip(), line)
                except ValueError as error:
                    self._target.leave(line, str(error), self.tally)
        self._end_listener()
        self._end_bridge()
        self._finish()

    def _convert_option(self, option: str, value: str, line: str) -> None:
        target, tally = self._target, self.tally
        if option == "connection":
            self._end_bridge()
            self._bridge = {"connection": [value]}
            tally.left += 1
        elif self._bridge and option not in ("listener", "port"):
            self._bridge.setdefault(option, []).append(value)
            tally.left += 1
        elif option in ("listener", "port"):
            self._begin_listener(option, value, line)
        elif option == "protocol":
            if value not in ("mqtt", "websockets"):
                raise ValueError("it is not mqtt or websockets")
            self._listener = "web_mqtt" if value == "websockets" else "mqtt"
            tally.carried += 1
        elif option == "bind_address":
            target.carry("bind", value, line, tally)
        elif option in _SIMPLE:
            setting, convert = _SIMPLE[option]
            self._has_certificate |= option == "certfile"
            target.carry(setting, convert(value), line, tally)
        elif option in _ON_PLUGIN:
            target.plugin(_PLUGIN, _ON_PLUGIN[option], value, tally)
        else:
            self._convert_other(option, value, line)

    def _convert_other(self, option: str, value: str, line: str) -> None:
        target, tally = self._target, self.tally
        if option == "allow_anonymous":
            self._allows_anonymous = boolean(value)
            tally.carried += 1
        elif option == "require_certificate":
            self._requires_certificate = boolean(value)
            tally.carried += 1
        elif option == "persistence" and boolean(value):
            tally.carried += 1  # durable messages are always on disk
        elif option == "persistence":
            raise ValueError("messages with QoS 1 and 2 are always on disk")
        elif option == "log_dest" and value.startswith("file "):
            target.carry("log.file", value.partition(" ")[2], line, tally)
        elif option == "log_dest" and value in ("stderr", "stdout"):
            tally.carried += 1
        elif option == "tls_version":
            target.carry("tls.min_version", value.removeprefix("tlsv"), line, tally)
        else:
            target.leave(line, _REASONS.get(option, "it has no setting here"), tally)

    def _begin_listener(self, option: str, value: str, line: str) -> None:
        """Begin the section of a listener; ``port`` is that of the default one, whose other options may precede it."""
        self._end_listener()
        self._has_certificate &= option == "port"
        self._end_bridge()
        port, _, address = value.partition(" ")
        self._port = whole(port)
        self._listener = "mqtt"
        self.tally.carried += 1
        if address:
            self._target.carry("bind", address.strip(), line, self.tally)
            self.tally.carried -= 1

    def _end_listener(self) -> None:
        """Note the port of a listener: one with TLS if its section has a certificate."""
        if self._listener:
            secure = {"mqtt": "mqtts", "web_mqtt": "web_mqtts"}[self._listener]
            section = secure if self._has_certificate else self._listener
            if section in self._ports:
                line = f"listener {self._port}"
                self._target.leave(line, f"the listener {section} has the port {self._ports[section]}", self.tally)
                self.tally.carried -= 1
            else:
                self._ports[section] = self._port
        self._listener = ""

    def _end_bridge(self) -> None:
        """Add the command that sets the parameter of a bridge, and the options that it does not have."""
        bridge, self._bridge = self._bridge, {}
        if bridge:
            self._target.comments.extend(bridge_comments(bridge))

    def _finish(self) -> None:
        """Add what several lines decide together."""
        target = self._target
        for section, port in self._ports.items():
            target.settings[f"{section}.port"] = port
            target.origins[f"{section}.port"] = f"listener {port}", self.tally
        if self._ports and "mqtt" not in self._ports:
            target.settings["mqtt.port"] = "off"
        if self._requires_certificate:
            target.settings["tls.verify"] = "required"
            target.origins["tls.verify"] = "require_certificate true", self.tally
        plugin = target.plugins.get(_PLUGIN)
        if self._allows_anonymous:
            target.settings["mqtt.anonymous_from_network"] = True
        elif self._allows_anonymous is False or plugin:
            target.settings["mqtt.anonymous_user"] = ""
        if plugin is not None and not ("password_file" in plugin or "dynamic_security_file" in plugin):
            if self._allows_anonymous:
                plugin["anonymous_user"] = "guest"
            else:
                del target.plugins[_PLUGIN]
                target.leave("acl_file", "the plugin auth-mosquitto needs a password_file", self.tally)
