"""Conversion of RabbitMQ's ``advanced.config``, and of ``rabbitmq.config`` as before 3.7: one Erlang term.

What ``rabbitmq.conf`` has too becomes its keys, which ``RabbitmqFile`` converts.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from gateway.cli.migrate.erlang_terms import ErlangAtom, NotATerm, read_term, written
from gateway.cli.migrate.ldap_queries import QUERIES
from gateway.cli.migrate.rabbitmq import RabbitmqFile
from gateway.cli.migrate.target import SECRET_PARTS, Target
from gateway.definitions.secrets import shown_text

#: Applications, and the beginning of their keys in ``rabbitmq.conf``.
_PREFIXES: Final = {
    "rabbit": "",
    "rabbitmq_management": "management.",
    "rabbitmq_mqtt": "mqtt.",
    "rabbitmq_stomp": "stomp.",
    "rabbitmq_web_mqtt": "web_mqtt.",
    "rabbitmq_web_stomp": "web_stomp.",
    "rabbitmq_auth_backend_ldap": "auth_ldap.",
    "rabbitmq_auth_backend_http": "auth_http.",
    "rabbitmq_auth_backend_oauth2": "auth_oauth2.",
    "rabbitmq_auth_backend_cache": "auth_cache.",
}

#: Keys with another name in ``rabbitmq.conf``, with their prefix.
_NAMES: Final = {
    "tcp_listeners": "listeners.tcp",
    "ssl_listeners": "listeners.ssl",
    "mqtt.tcp_listeners": "mqtt.listeners.tcp",
    "mqtt.ssl_listeners": "mqtt.listeners.ssl",
    "stomp.tcp_listeners": "stomp.listeners.tcp",
    "stomp.ssl_listeners": "stomp.listeners.ssl",
    "management.listener.port": "management.tcp.port",
    "management.cors_allow_origins": "management.cors.allow_origins",
    "management.cors_max_age": "management.cors.max_age",
    "auth_ldap.pool_size": "auth_ldap.connection_pool_size",
    "auth_oauth2.key_config.jwks_url": "auth_oauth2.jwks_url",
    "auth_oauth2.key_config.default_key": "auth_oauth2.default_key",
    "auth_oauth2.key_config.algorithms": "auth_oauth2.algorithms",
    "auth_oauth2.key_config.cacertfile": "auth_oauth2.https.cacertfile",
    "auth_oauth2.key_config.peer_verification": "auth_oauth2.https.peer_verification",
    "auth_oauth2.extra_scopes_source": "auth_oauth2.additional_scopes_key",
    "auth_oauth2.preferred_username_claims": "auth_oauth2.preferred_username_claims",
}

#: Keys whose value is a list, of which each item becomes a key with a number.
_NUMBERED: Final = frozenset(
    {
        *("listeners.tcp", "listeners.ssl", "mqtt.listeners.tcp", "mqtt.listeners.ssl"),
        *("stomp.listeners.tcp", "stomp.listeners.ssl", "management.cors.allow_origins", "auth_ldap.servers"),
        *("auth_oauth2.algorithms", "auth_oauth2.preferred_username_claims", "ssl_options.versions"),
    }
)
_FLAGS_OF_NAMES: Final = frozenset({"default_user_tags", "loopback_users"})

#: Shovel keys of ``advanced.config``, and the keys of the parameter.
_SHOVEL_KEYS: Final = {
    "queue": "src-queue",
    "prefetch_count": "src-prefetch-count",
    "reconnect_delay": "reconnect-delay",
}


class AdvancedFile:
    """Converts one file."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lines = RabbitmqFile(target)
        self.tally = self._lines.tally

    def convert(self, text: str) -> None:
        """Convert a file."""
        try:
            applications = read_term(text)
        except NotATerm as error:
            self._target.leave("advanced.config", str(error), self.tally)
            return
        for item in applications if isinstance(applications, list) else [applications]:
            match item:
                case (ErlangAtom(name), list(settings)):
                    self._application(name, settings)
                case _:
                    self._leave("", item, "it is no application with settings")
        self._lines.finish()

    def _application(self, name: str, settings: list[Any]) -> None:
        for setting in settings:
            match name, setting:
                case "rabbitmq_shovel", (ErlangAtom("shovels"), list(shovels)):
                    for shovel in shovels:
                        self._shovel(shovel)
                case "rabbitmq_auth_backend_ldap", (ErlangAtom(key), query) if key in QUERIES:
                    self._lines.ldap_queries.query(key, query)
                case "rabbitmq_auth_backend_ldap", (ErlangAtom("tag_queries"), list(queries)):
                    for query in queries:
                        self._lines.ldap_queries.tag_query(query)
                case _, (ErlangAtom(key), value) if name in _PREFIXES:
                    self._setting(name, _PREFIXES[name] + key, value)
                case _:
                    self._leave(name, setting, "this application has no settings here")

    def _setting(self, application: str, key: str, value: Any) -> None:
        """Convert a setting as the lines of ``rabbitmq.conf`` that say the same."""
        try:
            pairs = list(_pairs(_NAMES.get(key, key), value))
        except ValueError as error:
            self._leave(application, (ErlangAtom(key), value), str(error))
            return
        for name, text in pairs:
            self._lines.convert_key(name, text, f"{name} = {shown_text(text)}")

    def _shovel(self, term: Any) -> None:
        """Leave a command that sets the shovel, without passwords."""
        match term:
            case (ErlangAtom(name), list(settings)):
                value = json.dumps(_shovel_parameter(dict(_named(settings))))
                command = f"gatewayctl set_parameter shovel {name} '{value}'"
                self._leave("rabbitmq_shovel", ErlangAtom(name), f"shovels are parameters: {command}")
            case _:
                self._leave("rabbitmq_shovel", term, "it is no shovel")

    def _leave(self, application: str, term: Any, reason: str) -> None:
        shown = "***" if _is_secret(term) else shown_text(written(term))
        self._target.leave(f"{application} {shown}".strip(), reason, self.tally)


def _pairs(key: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of ``rabbitmq.conf`` for a setting. :raises ValueError: if it has none."""
    match value:
        case _ if key == "auth_backends":
            yield from _backends(value)
        case [*items] if key in _NUMBERED:
            for number, item in enumerate(items, 1):
                yield f"{key}.{number}", _endpoint(item)
        case [*items] if key in _FLAGS_OF_NAMES:
            if not items and key == "loopback_users":
                yield key, "none"
            for item in items:
                yield f"{key}.{_text(item)}", "true"
        case (ErlangAtom(kind), amount) if key.endswith(("vm_memory_high_watermark", "disk_free_limit")):
            yield f"{key}.{'relative' if kind == 'mem_relative' else kind}", _text(amount)
        case (user, password) if key.endswith(("dn_lookup_bind", "other_bind")):
            yield f"{key}.user_dn", _text(user)
            yield f"{key}.password", _text(password)
        case [configure, write, read] if key == "default_permissions":
            yield from zip(
                (f"{key}.{name}" for name in ("configure", "write", "read")),
                map(_text, (configure, write, read)),
                strict=True,
            )
        case [*settings] if settings and all(isinstance(item, tuple) and len(item) == 2 for item in settings):
            for name, item in settings:
                inner = f"{key}.{_text(name)}"
                yield from _pairs(_NAMES.get(inner, inner), item)
        case _:
            yield key, _text(value)


def _backends(value: Any) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(value if isinstance(value, list) else [value], 1):
        match item:
            case (authn, authz):
                yield f"auth_backends.{number}.authn", _text(authn)
                yield f"auth_backends.{number}.authz", _text(authz[0] if isinstance(authz, list) and authz else authz)
            case _:
                yield f"auth_backends.{number}", _text(item)


def _endpoint(item: Any) -> str:
    match item:
        case (str(address), int(port)):
            return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        case ErlangAtom() if item.name.startswith("tlsv"):
            return item.name
        case _:
            return _text(item)


def _text(value: Any) -> str:
    if isinstance(value, ErlangAtom | str | int | float):
        return str(value)
    raise ValueError(f"rabbitmq.conf has no such value: {shown_text(written(value))}")


def _named(settings: list[Any]) -> Iterator[tuple[str, Any]]:
    for setting in settings:
        if isinstance(setting, tuple) and len(setting) == 2:
            yield str(setting[0]), setting[1]


def _shovel_parameter(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the parameter of a shovel, in both forms that RabbitMQ has had; URIs have no passwords."""
    value: dict[str, Any] = {}
    for end, old, new in (("src", "sources", "source"), ("dest", "destinations", "destination")):
        parts = dict(_named(settings.get(new) or settings.get(old) or []))
        uris = parts.get("uris") or parts.get("brokers") or [parts.get("broker", "amqp://")]
        value[f"{end}-protocol"] = str(parts.get("protocol", "amqp091"))
        value[f"{end}-uri"] = [shown_text(str(uri)) for uri in uris]
        if "queue" in parts:
            value[f"{end}-queue"] = str(parts["queue"])
        fields = dict(
            _named(parts.get("publish_fields") or (settings.get("publish_fields") or [] if end == "dest" else []))
        )
        value |= {
            f"{end}-exchange{'-key' if name == 'routing_key' else ''}": str(text) for name, text in fields.items()
        }
    for key, name in _SHOVEL_KEYS.items():
        if key in settings:
            value[name] = settings[key] if isinstance(settings[key], int | float) else str(settings[key])
    if "ack_mode" in settings:
        value["ack-mode"] = str(settings["ack_mode"]).replace("_", "-")
    return value


def _is_secret(term: Any) -> bool:
    """Return whether a setting has the name of a secret."""
    return isinstance(term, tuple) and bool(term) and any(part in str(term[0]).lower() for part in SECRET_PARTS)
