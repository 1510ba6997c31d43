"""The policies of one virtual host, and the one that applies to a queue or an exchange (R139, R140)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Arguments
from gateway.kernel.patterns import EVERYTHING, Compile, NeverMatching, Pattern
from gateway.kernel.settings.effective_settings import EffectiveSettings, effective
from gateway.kernel.settings.offered_settings import NO_OFFERED_SETTINGS, OfferedSettings
from gateway.kernel.settings.policy_checks import ineffective_keys, require_usable_policy

EXCHANGE: Final = "exchanges"
"""The kind of every exchange."""

#: Kind of object to the values of ``apply-to`` that include it. A queue's kind follows from its type.
APPLIES: Final = {
    EXCHANGE: frozenset({"all", "exchanges"}),
    "classic_queues": frozenset({"all", "queues", "classic_queues"}),
    "quorum_queues": frozenset({"all", "queues", "quorum_queues"}),
    "streams": frozenset({"all", "queues", "streams"}),
}
_KIND_BY_QUEUE_TYPE: Final = {"quorum": "quorum_queues", "stream": "streams"}


def kind_of_queue(arguments: Arguments) -> str:
    """Return the kind of a queue with these arguments, in the terms of policies."""
    return _KIND_BY_QUEUE_TYPE.get(str(arguments.get("x-queue-type", "classic")), "classic_queues")


class CompiledPolicy(NamedTuple):
    """A compiled policy. ``fault`` is why it, or a part of it, has no effect; empty if all of it has."""

    record: PolicyRecord
    pattern: Pattern
    fault: str = ""

    def matches(self, kind: str, name: str) -> bool:
        """Return whether the policy matches an object of this kind and name."""
        return self.record.apply_to in APPLIES[kind] and self.pattern.matches(name)


class Policies:
    """Owns the policies and operator policies of one virtual host, highest priority first.

    ``version`` rises with every change. Of equal priority the policy whose name sorts first applies, so that the result
    does not depend on the order in which they were set.
    """

    def __init__(self, compile_pattern: Compile) -> None:
        self.version = 0
        self._offered = NO_OFFERED_SETTINGS
        self._compile_pattern = compile_pattern
        self._rules: list[CompiledPolicy] = []
        self._operator_rules: list[CompiledPolicy] = []

    def __iter__(self) -> Iterator[PolicyRecord]:
        return (rule.record for rule in (*self._rules, *self._operator_rules))

    def use(self, offered: OfferedSettings) -> None:
        """Use the merge rules of these settings, which plugins offer, for all settings computed from now on."""
        self._offered = offered
        self._rules = [self._rule(rule.record) for rule in self._rules]
        self._operator_rules = [self._rule(rule.record) for rule in self._operator_rules]

    def put(self, record: PolicyRecord) -> None:
        """Add or replace a policy; an invalid one (from an older version) matches nothing."""
        self.remove(record)
        rules = self._ranked(record.is_operator)
        rules.append(self._rule(record))
        rules.sort(key=lambda rule: (-rule.record.priority, rule.record.name))

    def remove(self, record: PolicyRecord) -> None:
        """Remove the policy of this name, if there is one."""
        rules = self._ranked(record.is_operator)
        rules[:] = [rule for rule in rules if rule.record.name != record.name]
        self.version += 1

    def fault(self, record: PolicyRecord) -> str:
        """Return why a policy, or a part of it, has no effect; empty if all of it has."""
        return next((rule.fault for rule in self._ranked(record.is_operator) if rule.record is record), "")

    def settings(self, kind: str, name: str, arguments: Arguments) -> EffectiveSettings:
        """Return the effective settings of an object declared with these arguments."""
        policy, operator_policy = _first(self._rules, kind, name), _first(self._operator_rules, kind, name)
        return effective(arguments, policy, operator_policy, self._offered)

    def changed(
        self, settings: EffectiveSettings, kind: str, name: str, arguments: Arguments
    ) -> EffectiveSettings | None:
        """Return the new effective settings of an object, or ``None`` if the same policies apply as before."""
        policy, operator_policy = _first(self._rules, kind, name), _first(self._operator_rules, kind, name)
        if policy is settings.policy and operator_policy is settings.operator_policy:
            return None
        return effective(arguments, policy, operator_policy, self._offered)

    def _rule(self, record: PolicyRecord) -> CompiledPolicy:
        """Compile a policy. One stored by an earlier version may be invalid in this one."""
        try:
            require_usable_policy(record, self._compile_pattern)
            fault = ineffective_keys(record, self._offered)
            return CompiledPolicy(record, self._compile_pattern(record.pattern or EVERYTHING), fault)
        except PreconditionFailed as refusal:
            return CompiledPolicy(record, NeverMatching(), str(refusal))

    def _ranked(self, is_operator: bool) -> list[CompiledPolicy]:
        return self._operator_rules if is_operator else self._rules


def _first(rules: list[CompiledPolicy], kind: str, name: str) -> PolicyRecord | None:
    return next((rule.record for rule in rules if rule.matches(kind, name)), None)
