"""JSON views of policies, and of the policies of a queue."""

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.management.http.routes import Fields


def policy_view(policy: PolicyRecord, fault: str = "") -> Fields:
    """Return the view of a policy or operator policy; ``fault`` is why it has no effect, empty if it has."""
    view = {"vhost": policy.vhost, "name": policy.name} | rule_view(policy)
    return view | {"without_effect": fault} if fault else view


def rule_view(policy: PolicyRecord) -> Fields:
    """Return the rule of a policy."""
    return {
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }


def policy_fields(queue: QueueLike) -> Fields:
    """Return the policies of a queue, and the source of each of its settings."""
    settings = queue.settings
    return {
        "policy": settings.policy.name if settings.policy is not None else None,
        "operator_policy": settings.operator_policy.name if settings.operator_policy is not None else None,
        "effective_policy_definition": settings.policy_definition,
        "effective_settings": {
            name: {"value": setting.value, "source": setting.source} for name, setting in settings.items()
        },
    }
