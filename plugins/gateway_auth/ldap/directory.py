"""Requests to LDAP servers, by ldap3. All of them wait, so they are made in threads."""

import math
import ssl
from typing import Any, Final

import ldap3
from ldap3.core.exceptions import LDAPException
from ldap3.core.results import (
    RESULT_INVALID_CREDENTIALS,
    RESULT_NO_SUCH_OBJECT,
    RESULT_SIZE_LIMIT_EXCEEDED,
    RESULT_SUCCESS,
)
from ldap3.utils.conv import escape_filter_chars

from gateway.api import Principal
from gateway_auth.asked.questions import Question
from gateway_auth.ldap.queries import escaped_value, parse_query
from gateway_auth.ldap.settings import LdapSettings

#: The attributes that name the members of a group, for the usual types of groups.
_MEMBERS: Final = ("member", "uniqueMember")


class LdapError(Exception):
    """No server gave a usable response; the text is the reason."""


class LdapConnection:
    """One connection, as queries see it; bound as ``bind_dn``."""

    def __init__(self, connection: Any, settings: LdapSettings) -> None:
        self._connection = connection
        self._settings = settings

    def is_in_group(self, group: str, user_dn: str) -> bool:
        """Whether a group has the user as a member."""
        base = self._settings.group_lookup_base
        dn = f"{group},{base}" if base and not group.lower().endswith(base.lower()) else group
        wanted = "".join(f"({name}={escape_filter_chars(user_dn)})" for name in _MEMBERS)
        return bool(self._found(dn, f"(|{wanted})", ldap3.BASE))

    def has_value(self, dn: str, attribute: str, value: str) -> bool:
        """Whether an entry has a value of an attribute, by the directory's own comparison."""
        return bool(self._found(dn, f"({attribute}={escape_filter_chars(value)})", ldap3.BASE))

    def dn_of(self, user: str) -> str | None:
        """Return the distinguished name of a user; ``None`` if there is none, or more than one."""
        settings = self._settings
        if not settings.dn_lookup_base:
            return settings.user_dn_pattern.replace("${username}", escaped_value(user))
        wanted = f"({settings.dn_lookup_attribute}={escape_filter_chars(user)})"
        found = self._found(settings.dn_lookup_base, wanted, ldap3.SUBTREE)
        return found[0] if len(found) == 1 else None

    def _found(self, base: str, wanted: str, scope: str) -> list[str]:
        """Return the names of the entries that match a filter. :raises LdapError: if the search fails."""
        connection = self._connection
        connection.search(base, wanted, scope, attributes=[ldap3.NO_ATTRIBUTES], size_limit=2)
        code = connection.result["result"]
        if code not in (RESULT_SUCCESS, RESULT_NO_SUCH_OBJECT, RESULT_SIZE_LIMIT_EXCEEDED):
            raise LdapError(str(connection.result["description"]))
        return [entry["dn"] for entry in connection.response if entry["type"] == "searchResEntry"]


class LdapDirectory:
    """Logs in users, and answers questions about them. Each request has its own connection."""

    def __init__(self, settings: LdapSettings) -> None:
        self._settings = settings
        tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=settings.ca_file or None)
        self._servers = [
            ldap3.Server(url, connect_timeout=settings.timeout_s, get_info=ldap3.NONE, tls=tls)
            for url in settings.servers
        ]

    def log_in(self, user: str, password: str, vhost: str) -> Principal | None:
        """Return the principal with its tags; ``None`` if the directory refuses it.

        :raises LdapError: if no server answers.
        """
        if not password:
            return None  # a bind without a password is anonymous, and succeeds (RFC 4513, 5.1.2)
        connection = self._search_connection()
        try:
            directory = LdapConnection(connection, self._settings)
            dn = directory.dn_of(user)
            if dn is None or not self._binds(dn, password):
                return None
            variables = _variables(user, dn, vhost)
            queries = self._settings.tag_queries.items()
            tags = [tag for tag, text in queries if parse_query(text).holds(directory, variables)]
            return Principal(user, frozenset(tags))
        except LDAPException as error:
            raise LdapError(str(error)) from None
        finally:
            connection.unbind()

    def allows(self, question: Question) -> bool:
        """Whether the query for this question is true. :raises LdapError: if no server answers."""
        setting = {"vhost": "vhost_access_query", "topic": "topic_access_query"}
        query = self._settings.query(setting.get(question.resource.value, "resource_access_query"))
        connection = self._search_connection()
        try:
            directory = LdapConnection(connection, self._settings)
            dn = directory.dn_of(question.user)
            if dn is None:
                return False
            variables = _variables(question.user, dn, question.vhost) | {
                "resource": question.resource.value,
                "name": question.name,
                "permission": question.permission,
                "routing_key": question.routing_key,
                "client_id": question.client_id,
            }
            return query.holds(directory, variables)
        except LDAPException as error:
            raise LdapError(str(error)) from None
        finally:
            connection.unbind()

    def _search_connection(self) -> Any:
        settings = self._settings
        connection = self._bound(settings.bind_dn, settings.bind_password.get_secret_value())
        if connection is None:
            raise LdapError("the server refuses bind_dn and bind_password")
        return connection

    def _binds(self, dn: str, password: str) -> bool:
        connection = self._bound(dn, password)
        if connection is None:
            return False
        connection.unbind()
        return True

    def _bound(self, dn: str, password: str) -> Any:
        """Return a connection bound as a user, of the first server that answers; ``None`` if it refuses the password.

        :raises LdapError: if none answers.
        """
        reasons = []
        for server in self._servers:
            try:
                connection = ldap3.Connection(
                    server,
                    dn or None,
                    password or None,
                    receive_timeout=math.ceil(self._settings.timeout_s),  # ldap3 takes whole seconds
                    raise_exceptions=False,
                )
                if self._settings.starttls:
                    connection.start_tls()
                if connection.bind():
                    return connection
                code = connection.result["result"]
                connection.unbind()
                if code == RESULT_INVALID_CREDENTIALS:
                    return None
                reasons.append(str(connection.result["description"]))
            except (LDAPException, OSError) as error:
                reasons.append(str(error))
        raise LdapError("; ".join(reasons))


def _variables(user: str, dn: str, vhost: str) -> dict[str, str]:
    others = dict.fromkeys(("resource", "name", "permission", "routing_key", "client_id"), "")
    return {"username": user, "user_dn": dn, "vhost": vhost, **others}
