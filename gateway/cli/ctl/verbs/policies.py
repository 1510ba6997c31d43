"""Verbs for policies and operator policies."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from gateway.cli.ctl.errors import Declined, NoSuchVirtualHost
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, compact, number, parse_object, part, text
from gateway.cli.ctl.verb import verb
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.patterns import EVERYTHING
from gateway.patterns import compile_pattern

COLUMNS = ("vhost", "name", "pattern", "apply-to", "definition", "priority")

APPLIES_TO = {
    "queue": ("all", "queues", "classic_queues", "quorum_queues", "streams"),
    "exchange": ("all", "exchanges"),
}
"""Kind of entity and the values of ``apply-to`` that include it."""

QUEUE_TYPES = {"classic_queues": "classic", "quorum_queues": "quorum", "streams": "stream"}

_TERMS = (
    click.argument("name"),
    click.argument("pattern"),
    click.argument("definition"),
    click.option(
        "--priority",
        type=int,
        default=0,
        show_default=True,
        help="The matching policy with the highest priority applies.",
    ),
    click.option("--apply-to", default="all", show_default=True, help="queues, exchanges, all, classic_queues, ..."),
)


class _Kind(NamedTuple):
    """Policies or operator policies: their path in the API, and their names in texts, as rabbitmqctl has them."""

    path: str
    noun: str
    set_noun: str
    list_noun: str


_POLICIES: Final = _Kind("policies", "policy", "policy", "policies")
_OPERATOR_POLICIES: Final = _Kind(
    "operator-policies", "operator policy", "operator policy override", "operator policy overrides"
)


def _with_terms(action: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments and options that define a policy."""
    for term in reversed(_TERMS):
        action = term(action)
    return action


@verb
@_with_terms
def set_policy(session: VerbSession, **terms: Any) -> None:
    """Set a policy: DEFINITION, a JSON object, applies to entities whose name matches PATTERN."""
    _set(session, _POLICIES, **terms)


@verb
@click.argument("name")
def clear_policy(session: VerbSession, name: str) -> None:
    """Remove a policy."""
    _clear(session, _POLICIES, name)


@verb
def list_policies(session: VerbSession) -> None:
    """List the policies of a virtual host."""
    _list(session, _POLICIES)


@verb
@_with_terms
def set_operator_policy(session: VerbSession, **terms: Any) -> None:
    """Set an operator policy: upper limits for policies and arguments."""
    _set(session, _OPERATOR_POLICIES, **terms)


@verb
@click.argument("name")
def clear_operator_policy(session: VerbSession, name: str) -> None:
    """Remove an operator policy."""
    _clear(session, _OPERATOR_POLICIES, name)


@verb
def list_operator_policies(session: VerbSession) -> None:
    """List the operator policies of a virtual host."""
    _list(session, _OPERATOR_POLICIES)


@verb
@click.argument("name")
@click.option("--object-type", type=click.Choice(list(APPLIES_TO)), default="queue", show_default=True)
def list_policies_that_match(session: VerbSession, name: str, object_type: str) -> None:
    """List the policies that match a queue or exchange. The first one applies."""
    vhost = session.vhost
    session.output.announce(f"Listing policies that match {object_type} '{name}' in vhost '{vhost}' ...")
    with session.reporting_missing(f"{object_type} '{name}'"):
        found = session.api.get(f"{object_type}s", vhost, name)
    matching = [policy for policy in _policies(session, _POLICIES) if _matches(policy, object_type, name, found)]
    session.output.rows(COLUMNS, map(_row, sorted(matching, key=lambda policy: -number(policy, "priority"))))


def _set(
    session: VerbSession, kind: _Kind, name: str, pattern: str, definition: str, priority: int, apply_to: str
) -> None:
    session.output.announce(
        f'Setting {kind.set_noun} "{name}" for pattern "{pattern}" to "{definition}" with priority "{priority}" '
        f'for vhost "{session.vhost}" ...'
    )
    settings = parse_object(definition, "the definition")
    body: JsonObject = {"pattern": pattern, "definition": settings, "priority": priority, "apply-to": apply_to}
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        session.api.put(kind.path, session.vhost, name, body=body)


def _clear(session: VerbSession, kind: _Kind, name: str) -> None:
    session.output.announce(f'Clearing {kind.noun} "{name}" on vhost "{session.vhost}" ...')
    with session.reporting_missing(f"{kind.noun} '{name}'"):
        session.api.delete(kind.path, session.vhost, name)


def _list(session: VerbSession, kind: _Kind) -> None:
    session.output.announce(f'Listing {kind.list_noun} for vhost "{session.vhost}" ...')
    found = _policies(session, kind)
    session.announce_without_effect(kind.noun, found)
    session.output.rows(COLUMNS, map(_row, found))


def _policies(session: VerbSession, kind: _Kind) -> list[JsonObject]:
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        found = session.api.list(kind.path, session.vhost)
    return sorted(found, key=lambda policy: text(policy, "name"))


def _row(policy: JsonObject) -> JsonObject:
    """Return a policy with its definition as text, as rabbitmqctl shows it in every format."""
    return {**policy, "definition": compact(policy.get("definition"))}


def _matches(policy: JsonObject, object_type: str, name: str, found: Json) -> bool:
    """Return whether a policy applies to an entity."""
    applies_to = text(policy, "apply-to")
    queue_type = QUEUE_TYPES.get(applies_to)
    if applies_to not in APPLIES_TO[object_type]:
        return False
    if queue_type is not None and part(found, "type") != queue_type:
        return False
    try:
        return compile_pattern(text(policy, "pattern") or EVERYTHING).matches(name)
    except PreconditionFailed as error:  # RabbitMQ's patterns are PCRE, which has more features
        raise Declined(f"the pattern of policy '{text(policy, 'name')}' is not supported: {error}") from None


VERBS = (
    set_policy,
    clear_policy,
    list_policies,
    set_operator_policy,
    clear_operator_policy,
    list_operator_policies,
    list_policies_that_match,
)
