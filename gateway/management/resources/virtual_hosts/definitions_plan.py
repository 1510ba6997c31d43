"""/definitions-plan: what definitions would change, and applying them declaratively. RabbitMQ has no such resource."""

from collections.abc import Generator
from hashlib import sha256
from typing import Final

from twisted.internet.defer import Deferred

from gateway.definitions import Definitions, check, steps_of
from gateway.definitions.plan import Plan, Step, deleting, planning
from gateway.definitions.states import CATEGORIES
from gateway.management.auditing.masking import masked
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request, unknown_vhost
from gateway.management.http.routes import ANY_BODY, Fields, LongTask, Routes
from gateway.management.password_hashing import hash_passwords
from gateway.management.resources.virtual_hosts.definitions import assign_vhost, decoded_document
from gateway.management.views.json import encode

routes = Routes()

_SOURCE: Final = "definitions"
_PLAN: Final = "/definitions-plan"
_APPLY: Final = "/definitions-apply"

#: Steps of a plan in an answer.
_MOST_STEPS: Final = 10_000

#: Steps that are converted at once.
_AT_ONCE: Final = 50


@routes.post(_PLAN, level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def plan(call: Call) -> LongTask:
    """Compare definitions with the broker, and return what applying them would change."""
    _require_one_cell(call)
    return LongTask(_planned(call, None), is_exclusive=True)


@routes.post(f"{_PLAN}/<vhost>", level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def plan_of_vhost(call: Call, vhost: str) -> LongTask:
    """Compare definitions with one virtual host."""
    _require_vhost(call, vhost)
    return LongTask(_planned(call, vhost), is_exclusive=True)


@routes.post(_APPLY, level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def apply(call: Call) -> LongTask:
    """Make the broker what definitions describe; return what was changed."""
    _require_one_cell(call)
    return LongTask(_applied(call, None), is_exclusive=True)


@routes.post(f"{_APPLY}/<vhost>", level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def apply_to_vhost(call: Call, vhost: str) -> LongTask:
    """Make one virtual host what definitions describe."""
    _require_vhost(call, vhost)
    return LongTask(_applied(call, vhost), is_exclusive=True)


def _require_one_cell(call: Call) -> None:
    """Refuse a comparison with the whole of a cluster with several cells: each has a part of it."""
    if call.context.cells is not None:
        raise bad_request("a cluster with several cells compares one virtual host at a time: /definitions-plan/VHOST")


def plan_view(plan: Plan) -> Generator[None, None, Fields]:
    """Return a plan with its steps, without secrets, their numbers, and a digest that is that of equal plans only."""
    counts = dict.fromkeys(("create", "change", "delete", "conflict"), 0)
    views: list[Fields] = []
    digest = sha256()
    for number, step in enumerate(plan.steps):
        counts[step.verb.value] += 1
        view = _step_view(step)
        digest.update(encode(view) + b"\n")
        if number < _MOST_STEPS:
            views.append(view)
        if number % _AT_ONCE == 0:
            yield
    return {**counts, "plan": digest.hexdigest(), "steps": views}


def _step_view(step: Step) -> Fields:
    view: Fields = {
        "action": step.verb.value,
        "category": step.key.category,
        "vhost": step.key.vhost or None,
        "name": " ".join(name for name in step.key.names if name),
        "before": masked(step.before),
        "after": masked(step.after),
    }
    return view | {"reason": step.reason} if step.reason else view


def _planned(call: Call, vhost: str | None) -> "Generator[Deferred[None] | None, None, Fields]":
    _, plan = yield from _planning(call, vhost)
    return (yield from plan_view(plan))


def _applied(call: Call, vhost: str | None) -> "Generator[Deferred[None] | None, None, Fields]":
    """Apply the definitions as a whole or not at all: a conflict, another plan or an error changes nothing."""
    definitions, plan = yield from _planning(call, vhost)
    view = yield from plan_view(plan)
    if call.query.get("plan", view["plan"]) != view["plan"]:
        raise HttpError(409, "plan_changed", "the broker is not as it was when the plan was made, nothing was changed")
    if plan.conflicts:
        shown = "; ".join(
            f"{step.key.category} '{step.key.names[0]}' in vhost '{step.key.vhost}': {step.reason}"
            for step in plan.conflicts[:10]
        )
        raise HttpError(409, "conflict", f"{len(plan.conflicts)} conflicts, nothing was changed: {shown}")
    call.audit_details |= {name: view[name] for name in ("create", "change", "delete")}
    if plan.steps:
        yield from hash_passwords(definitions, call.context.passwords)
        yield from steps_of(definitions, call.broker, _SOURCE, vhost or "/")
        yield from deleting(plan, call.broker)
    return view


def _planning(call: Call, vhost: str | None) -> Generator[None, None, tuple[Definitions, Plan]]:
    """Parse and check the definitions, and compare them with the broker."""
    document = yield from _document(call, vhost)
    pruned = set(document) & set(CATEGORIES) if call.is_set("prune") else set()
    definitions = yield from check(document, _SOURCE)
    kept = (call.principal.name,)
    plan = yield from planning(definitions, call.broker, vhost, pruned=pruned, kept_users=kept)
    return definitions, plan


def _document(call: Call, vhost: str | None) -> Generator[None, None, Fields]:
    document = yield from decoded_document(call.content)
    if vhost is not None:
        given = set(document)
        assigned = yield from assign_vhost(document, vhost)
        return {category: entries for category, entries in assigned.items() if category in given}
    return document


def _require_vhost(call: Call, vhost: str) -> None:
    if vhost not in call.broker.vhost_by_name:
        raise unknown_vhost()
    if not call.content:
        raise bad_request("the definitions are missing")
