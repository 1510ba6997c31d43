"""Conversion of RabbitMQ's authentication backends to plugins: their chain, LDAP, OAuth 2, HTTP and the cache."""

import re
from pathlib import Path
from typing import Any, Final

from gateway.cli.migrate.target import Tally, Target
from gateway.cli.migrate.values import boolean, whole

_LDAP, _OAUTH, _HTTP, _CACHE, _INTERNAL = "auth-ldap", "auth-oauth2", "auth-http", "auth-cache", "auth-internal"

PLUGINS: Final = {
    "internal": _INTERNAL, "rabbit_auth_backend_internal": _INTERNAL,
    "http": _HTTP, "rabbit_auth_backend_http": _HTTP,
    "ldap": _LDAP, "rabbit_auth_backend_ldap": _LDAP,
    "oauth2": _OAUTH, "oauth": _OAUTH, "rabbit_auth_backend_oauth2": _OAUTH,
    "cache": _CACHE, "rabbit_auth_backend_cache": _CACHE,
}  # fmt: skip

#: Plugins that may leave logins or permissions to others, and the one setting without which each is of no use.
_REQUIRED: Final = {_LDAP: "servers", _HTTP: "user_path", _OAUTH: "resource_server_id"}

_MOST_THREADS: Final = 64

#: Keys whose values are texts or booleans of the same meaning.
_TEXTS: Final = {
    "auth_ldap.user_dn_pattern": (_LDAP, "user_dn_pattern"),
    "auth_ldap.dn_lookup_attribute": (_LDAP, "dn_lookup_attribute"),
    "auth_ldap.dn_lookup_base": (_LDAP, "dn_lookup_base"),
    "auth_ldap.dn_lookup_bind.user_dn": (_LDAP, "bind_dn"),
    "auth_ldap.dn_lookup_bind.password": (_LDAP, "bind_password"),
    "auth_ldap.other_bind.user_dn": (_LDAP, "bind_dn"),
    "auth_ldap.other_bind.password": (_LDAP, "bind_password"),
    "auth_ldap.group_lookup_base": (_LDAP, "group_lookup_base"),
    "auth_ldap.ssl_options.cacertfile": (_LDAP, "ca_file"),
    "auth_oauth2.resource_server_id": (_OAUTH, "resource_server_id"),
    "auth_oauth2.resource_server_type": (_OAUTH, "resource_server_type"),
    "auth_oauth2.scope_prefix": (_OAUTH, "scope_prefix"),
    "auth_oauth2.additional_scopes_key": (_OAUTH, "additional_scopes_key"),
    "auth_oauth2.issuer": (_OAUTH, "issuer"),
    "auth_oauth2.jwks_url": (_OAUTH, "jwks_url"),
    "auth_oauth2.jwks_uri": (_OAUTH, "jwks_url"),
    "auth_oauth2.default_key": (_OAUTH, "default_key"),
    "auth_oauth2.https.cacertfile": (_OAUTH, "ca_file"),
    "auth_http.user_path": (_HTTP, "user_path"),
    "auth_http.vhost_path": (_HTTP, "vhost_path"),
    "auth_http.resource_path": (_HTTP, "resource_path"),
    "auth_http.topic_path": (_HTTP, "topic_path"),
    "auth_http.http_method": (_HTTP, "http_method"),
    "auth_http.ssl_options.cacertfile": (_HTTP, "ca_file"),
}
_FLAGS: Final = {
    "auth_ldap.use_starttls": (_LDAP, "starttls"),
    "auth_oauth2.verify_aud": (_OAUTH, "verify_aud"),
}
_LISTS: Final = {
    "auth_oauth2.preferred_username_claims.": (_OAUTH, "preferred_username_claims"),
    "auth_oauth2.algorithms.": (_OAUTH, "algorithms"),
}

#: Keys without a setting whose value is what happens here anyway, and the reasons for the others.
_SAME: Final = {
    "auth_ldap.ssl_options.verify": "verify_peer",
    "auth_http.ssl_options.verify": "verify_peer",
    "auth_oauth2.https.peer_verification": "verify_peer",
    "auth_ldap.dn_lookup_bind": "anon",
    "auth_ldap.other_bind": "anon",
    "auth_ldap.log": "false",
}
_REASONS: Final = {
    "auth_ldap.dn_lookup_bind": "searches and queries bind as bind_dn, or anonymously",
    "auth_ldap.other_bind": "searches and queries bind as bind_dn, or anonymously",
    "auth_ldap.user_bind_pattern": "a user binds with the name of user_dn_pattern or of the search",
    "auth_ldap.log": "requests of LDAP are not logged",
    "auth_ldap.idle_timeout": "connections have no such limit",
    "auth_ldap.ssl_options.verify": "certificates are always verified",
    "auth_http.ssl_options.verify": "certificates are always verified",
    "auth_oauth2.https.peer_verification": "certificates are always verified",
}


#: The number of a link of the chain.
_NUMBER: Final = re.compile(r"[0-9]{1,9}")


class Backends:
    """Collects the keys of backends; ``finish`` adds what several of them decide together."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self._target = target
        self._tally = tally
        self._chain: dict[str, dict[str, str]] = {}
        self._hosts: list[str] = []
        self._port: int | None = None
        self._has_tls = False
        self._cached: dict[str, str] = {}
        self._cache_refuses = False

    def convert(self, key: str, value: str, line: str) -> bool:
        """Convert a line; return whether it is about backends. :raises ValueError: with the reason if it cannot be."""
        if key.startswith("auth_backends."):
            self._link(key, value)
        elif key in _TEXTS:
            self._set(*_TEXTS[key], value, line)
        elif key in _FLAGS:
            self._set(*_FLAGS[key], boolean(value), line)
        elif (listed := next((each for each in _LISTS if key.startswith(each)), None)) is not None:
            plugin, name = _LISTS[listed]
            items = self._target.plugins.setdefault(plugin, {}).setdefault(name, [])
            assert isinstance(items, list)
            items.append(value)
        elif key.startswith("auth_oauth2.signing_keys."):
            self._signing_key(key.removeprefix("auth_oauth2.signing_keys."), value)
        elif key.startswith("auth_oauth2.scope_aliases."):
            self._member(_OAUTH, "scope_aliases", key.removeprefix("auth_oauth2.scope_aliases."), value.split())
        elif key.startswith(("auth_ldap.", "auth_cache.")):
            self._special(key, value)
        elif key in _SAME or key in _REASONS:
            self._same(key, value)
        else:
            return False
        self._tally.carried += 1
        return True

    def query(self, setting: str, text: str) -> None:
        """Set a query of LDAP."""
        self._target.plugins.setdefault(_LDAP, {})[setting] = text

    def tag_query(self, tag: str, text: str) -> None:
        """Set the query of a tag."""
        self._member(_LDAP, "tag_queries", tag, text)

    def finish(self) -> None:
        """Add the chain, and leave out what cannot work."""
        plugins = self._target.plugins
        if self._hosts:
            scheme, usual = ("ldaps", 636) if self._has_tls else ("ldap", 389)
            port = "" if self._port in (None, usual) else f":{self._port}"
            servers = [f"{scheme}://{f'[{host}]' if ':' in host else host}{port}" for host in self._hosts]
            plugins.setdefault(_LDAP, {})["servers"] = servers
        ordered = self._ordered()
        for plugin, required in _REQUIRED.items():
            if plugin in plugins and required not in plugins[plugin] and plugins[plugin].get("logins", True):
                settings = plugins.pop(plugin)
                self._target.leave(f"{plugin} {settings or ''}".strip(), f"{required} is missing", self._tally)
        self._target.plugins = {name: plugins[name] for name in (*ordered, *plugins) if name in plugins}

    def _ordered(self) -> list[str]:
        """Return the plugins in the order of the chain, with what each decides on."""
        if not self._chain:
            return []
        logins: list[str] = []
        permissions: list[str] = []
        order: list[str] = []
        for _, link in sorted(self._chain.items(), key=lambda item: int(item[0])):
            for role, decide in (("authn", logins), ("authz", permissions)):
                name = link.get(role, link.get(""))
                for plugin in self._behind(name, role) if name is not None else ():
                    decide.append(plugin)
                    order.append(plugin)
        order = list(dict.fromkeys(order))
        plugins = self._target.plugins
        for plugin in order:
            settings = plugins.setdefault(plugin, {})
            if plugin in (_LDAP, _HTTP):
                settings.update({} if plugin in logins else {"logins": False})
                settings.update({} if plugin in permissions else {"permissions": False})
        if _INTERNAL not in order:
            plugins[_INTERNAL] = {}
            self._target.comments.append("auth_backends without internal: auth-internal is always on, here as the last")
            return [*order, _INTERNAL]
        if order[0] == _INTERNAL:
            del plugins[_INTERNAL]  # it comes first by itself
        return order

    def _behind(self, name: str, role: str) -> list[str]:
        """Return the plugins of a backend: for the cache, those that it caches too."""
        plugin = PLUGINS[name]
        if plugin != _CACHE:
            return [plugin]
        cached = PLUGINS.get(self._cached.get(role) or self._cached.get("", ""), _INTERNAL)
        names = self._target.plugins.setdefault(_CACHE, {}).setdefault("plugins", [])
        assert isinstance(names, list)
        if cached not in names:
            names.append(cached)
        return [cached, _CACHE]

    def _link(self, key: str, value: str) -> None:
        number, _, role = key.removeprefix("auth_backends.").partition(".")
        if not _NUMBER.fullmatch(number) or role not in ("", "authn", "authz"):
            raise ValueError("it is no place in the chain of backends")
        if value not in PLUGINS:
            raise ValueError("no plugin is known for this backend")
        self._chain.setdefault(number, {})[role] = value

    def _set(self, plugin: str, name: str, value: object, line: str) -> None:
        settings = self._target.plugins.setdefault(plugin, {})
        if settings.get(name, value) != value:
            raise ValueError(f"{name} of {plugin} is set already")
        settings[name] = value

    def _member(self, plugin: str, name: str, key: str, value: object) -> None:
        members = self._target.plugins.setdefault(plugin, {}).setdefault(name, {})
        assert isinstance(members, dict)
        members[key] = value

    def _signing_key(self, name: str, file: str) -> None:
        try:
            pem = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ValueError("signing_keys of auth-oauth2 has the key itself, and this file cannot be read") from None
        self._member(_OAUTH, "signing_keys", name, pem)

    def _special(self, key: str, value: str) -> None:
        settings: dict[str, dict[str, Any]] = self._target.plugins
        match key.split("."):
            case ["auth_ldap", "servers", _]:
                self._hosts.append(value)
                settings.setdefault(_LDAP, {})
            case ["auth_ldap", "port"]:
                self._port = whole(value)
            case ["auth_ldap", "use_ssl"]:
                self._has_tls = boolean(value)
            case ["auth_ldap", "timeout"]:
                settings.setdefault(_LDAP, {})["timeout_s"] = min(60.0, max(0.1, whole(value) / 1000))
            case ["auth_ldap", "connection_pool_size"]:
                settings.setdefault(_LDAP, {})["threads"] = min(_MOST_THREADS, max(1, whole(value)))
            case ["auth_cache", "cached_backend"]:
                self._cached[""] = value
            case ["auth_cache", "cached_backend", role]:
                self._cached[role] = value
            case ["auth_cache", "cache_ttl"]:
                settings.setdefault(_CACHE, {})["ttl_s"] = whole(value) / 1000
                self._keep_refusals()
            case ["auth_cache", "cache_refusals"]:
                self._cache_refuses = boolean(value)
                self._keep_refusals()
            case _:
                self._same(key, value)

    def _keep_refusals(self) -> None:
        if self._cache_refuses:
            settings = self._target.plugins.setdefault(_CACHE, {})
            settings["refusal_ttl_s"] = settings.get("ttl_s", 15.0)

    def _same(self, key: str, value: str) -> None:
        """Accept a value that needs no setting here. :raises ValueError: with the reason for any other."""
        if key not in _SAME or value != _SAME[key]:
            plugin = _LDAP if "ldap" in key else _CACHE if "cache" in key else _OAUTH
            raise ValueError(_REASONS.get(key, f"{plugin} has no such setting, see docs/access-servers.md"))
