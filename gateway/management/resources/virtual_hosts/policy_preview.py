"""Previews of policies: what a policy would match and change, without setting it. RabbitMQ has no such resource."""

from collections.abc import Generator, Iterator
from itertools import chain
from typing import Final, TypeAlias

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.settings.effective_settings import EffectiveSettings
from gateway.kernel.settings.policies import EXCHANGE, Policies, kind_of_queue
from gateway.kernel.settings.policy_checks import require_valid_policy
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.resources.virtual_hosts.policies import policy_of

routes = Routes()

#: Maximum number of objects in a preview; all are counted.
_MOST_LISTED: Final = 100

Target: TypeAlias = QueueLike | Exchange


@routes.post("/policies/<vhost>/<name>/preview", level=AccessLevel.POLICYMAKER)
def preview(call: Call, vhost: str, name: str) -> LongTask:
    """Return what a policy would match and change; an empty body previews its removal."""
    return _preview(call, vhost, name, is_operator=False)


@routes.post("/operator-policies/<vhost>/<name>/preview", level=AccessLevel.ADMINISTRATOR)
def operator_preview(call: Call, vhost: str, name: str) -> LongTask:
    """Return what an operator policy would match and change; an empty body previews its removal."""
    return _preview(call, vhost, name, is_operator=True)


def _preview(call: Call, vhost: str, name: str, *, is_operator: bool) -> LongTask:
    virtual_host = call.vhost(vhost)
    policies = Policies(call.broker.compile_pattern)
    policies.use(virtual_host.queue_features.settings)
    for record in virtual_host.policies:
        if (record.name, record.is_operator) != (name, is_operator):
            policies.put(record)
    if call.content.strip():
        record = policy_of(vhost, name, call.fields, is_operator=is_operator)
        require_valid_policy(
            record,
            call.broker.compile_pattern,
            virtual_host.queue_features.settings,
            call.broker.archive_context.tables,
        )
        policies.put(record)
    return LongTask(_compared(virtual_host, policies, name, is_operator=is_operator))


def _compared(vhost: VirtualHost, policies: Policies, name: str, *, is_operator: bool) -> Generator[None, None, Fields]:
    """Compare the settings of all queues and exchanges with those under other policies, one object a step."""
    matched = {"queue": 0, "exchange": 0}
    changed = 0
    listed: list[Fields] = []
    for target in _targets(vhost):
        kind = EXCHANGE if isinstance(target, Exchange) else kind_of_queue(target.arguments)
        settings = policies.settings(kind, target.name, target.arguments)
        applied = settings.operator_policy if is_operator else settings.policy
        noun = "exchange" if kind == EXCHANGE else "queue"
        matched[noun] += applied is not None and applied.name == name
        changes = _changes(target.settings, settings)
        if changes or _names(target.settings) != _names(settings):
            changed += 1
            if len(listed) < _MOST_LISTED:
                listed.append(_view(noun, target, settings, changes))
        yield
    return {"queues": matched["queue"], "exchanges": matched["exchange"], "changed": changed, "changes": listed}


def _targets(vhost: VirtualHost) -> Iterator[Target]:
    exchanges = [exchange for exchange in vhost.exchange_by_name.values() if exchange.name]
    return chain(list(vhost.queue_by_name.values()), exchanges)


def _names(settings: EffectiveSettings) -> tuple[str | None, str | None]:
    return _name(settings.policy), _name(settings.operator_policy)


def _name(policy: PolicyRecord | None) -> str | None:
    return None if policy is None else policy.name


def _changes(before: EffectiveSettings, after: EffectiveSettings) -> Fields:
    """Return the settings with other values, each with the value before and after; ``None`` is not set."""
    changes: Fields = {}
    for name in sorted({*before, *after}):
        if before.value(name) != after.value(name):
            changes[name] = {"before": before.value(name), "after": after.value(name)}
    return changes


def _view(noun: str, target: Target, settings: EffectiveSettings, changes: Fields) -> Fields:
    before, after = _names(target.settings), _names(settings)
    return {
        "kind": noun,
        "name": target.name,
        "policy": {"before": before[0], "after": after[0]},
        "operator_policy": {"before": before[1], "after": after[1]},
        "settings": changes,
    }
