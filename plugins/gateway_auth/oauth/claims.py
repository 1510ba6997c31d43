"""The scopes in the claims of a token, wherever RabbitMQ looks for them.

These are the claim ``scope``, claims that the settings name, the permissions of a requesting party token (Keycloak's
``authorization.permissions``), aliases, and rich authorization requests (RFC 9396, ``authorization_details``).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway_auth.oauth.scopes import matches, pattern_of
from gateway_auth.oauth.settings import OAuthSettings

_SCOPE: Final = "scope"
_PARTY_SCOPES: Final = "authorization.permissions.scopes"
_DETAILS: Final = "authorization_details"

#: The actions of a detail, and the actions that are tags.
_ACTIONS: Final = frozenset({"read", "write", "configure"})
_TAGS: Final = frozenset({"monitoring", "administrator", "management", "policymaker"})

#: The attributes of a location, such as ``cluster:rabbitmq/vhost:shop/queue:orders``.
_ATTRIBUTES: Final = frozenset({"cluster", "vhost", "queue", "exchange", "routing-key"})

#: The longest path of a claim; each step descends into a table or a list.
_MOST_STEPS: Final = 20


def scopes_of(claims: Mapping[str, Any], settings: OAuthSettings) -> list[str]:
    """Return the scopes of a token; values of other types than expected are ignored."""
    paths = (_SCOPE, _PARTY_SCOPES, *settings.additional_scopes_key.split())
    found = [scope for path in paths for scope in _at(claims, path.split(".")[:_MOST_STEPS], settings)]
    found = [scope for each in found for scope in (each, *settings.scope_aliases.get(each, []))]
    if settings.resource_server_type:
        found += _of_details(claims.get(_DETAILS), settings)
    return found


def _at(value: Any, path: list[str], settings: OAuthSettings) -> Iterator[str]:
    """Yield the scopes at a path, in each table of a list."""
    if isinstance(value, list) and path:
        for each in value:
            if isinstance(each, dict):
                yield from _at(each, path, settings)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _at(value[path[0]], path[1:], settings)
    elif isinstance(value, str):
        yield from value.split()
    elif isinstance(value, list):
        yield from (each for each in value if isinstance(each, str))
    elif isinstance(value, dict):  # scopes by server, without the prefix
        own = _at(value.get(settings.resource_server_id), [], settings)
        yield from (f"{settings.prefix}{scope}" for scope in own)


def _of_details(details: Any, settings: OAuthSettings) -> Iterator[str]:
    """Yield the scopes of rich authorization requests for this type of server."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and detail.get("type") == settings.resource_server_type:
            places = [place for each in _texts(detail.get("locations")) for place in _places(each, settings)]
            for action in _texts(detail.get("actions")) if places else ():
                if action in _TAGS:
                    yield f"{settings.prefix}tag:{action}"
                elif action in _ACTIONS:
                    yield from (f"{settings.prefix}{action}:{place}" for place in places)


def _places(location: str, settings: OAuthSettings) -> Iterator[str]:
    """Yield the ``VHOST/NAME/ROUTING-KEY`` of a location of this server."""
    pairs = [part.split(":", 1) for part in location.split("/") if ":" in part]
    attributes = {name: value for name, value in pairs if name in _ATTRIBUTES}
    cluster, queue, exchange = (attributes.get(name) for name in ("cluster", "queue", "exchange"))
    if cluster is None or not matches(pattern_of(cluster), settings.resource_server_id):
        return
    if queue is None or exchange is None or queue == exchange:  # a scope is for queues and exchanges of a name
        name = queue or exchange or "*"
        yield f"{attributes.get('vhost', '*')}/{name}/{attributes.get('routing-key', '*')}"


def _texts(value: Any) -> list[str]:
    """Return a text, or the texts of a list."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]
