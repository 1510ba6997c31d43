"""The effective settings of a queue or exchange, and the source of each value.

A setting has the name of its policy key in RabbitMQ: the argument ``x-max-length`` and the policy key ``max-length``
are both the setting ``max-length``. If an argument and a policy both set it, most limits take the smaller value and
everything else the argument's; an operator policy is merged with the policy first (R51, R62, R101, R139, R140).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Arguments, Value
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.settings.offered_settings import NO_OFFERED_SETTINGS, OfferedSettings
from gateway.kernel.settings.policy_checks import KEYS

#: Arguments that are settings under their own name, without the prefix ``x-``.
UNPREFIXED: Final = frozenset({"alternate-exchange"})

QUORUM_DEFAULTS: Final[Arguments] = {"delivery-limit": 20}
"""The defaults of quorum queues (R113)."""


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One value, and its source: ``argument``, ``policy NAME``, ``operator policy NAME`` or ``default``."""

    name: str
    value: Value
    source: str


class EffectiveSettings(Mapping[str, EffectiveSetting]):
    """The settings of one queue or exchange, by name. Immutable.

    ``policy`` and ``operator_policy`` are the ones that match it, or ``None``. ``offered`` has the merge rules of
    settings that plugins offer.
    """

    __slots__ = ("_by_name", "_offered", "operator_policy", "policy")

    def __init__(
        self,
        settings: list[EffectiveSetting],
        policy: PolicyRecord | None = None,
        operator_policy: PolicyRecord | None = None,
        offered: OfferedSettings = NO_OFFERED_SETTINGS,
    ) -> None:
        self._offered = offered
        self._by_name = {setting.name: setting for setting in settings}
        self.policy = policy
        self.operator_policy = operator_policy

    def __getitem__(self, name: str) -> EffectiveSetting:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def number(self, name: str) -> int | None:
        """Return an integer setting; ``None`` if it is not set."""
        setting = self._by_name.get(name)
        return setting.value if setting is not None and isinstance(setting.value, int) else None

    def text(self, name: str) -> str | None:
        """Return a text setting; ``None`` if it is not set."""
        setting = self._by_name.get(name)
        return setting.value if setting is not None and isinstance(setting.value, str) else None

    def is_on(self, name: str) -> bool:
        """Return whether a boolean setting is true."""
        return self.value(name) is True

    def value(self, name: str) -> Value:
        """Return a setting of any type; ``None`` if it is not set."""
        setting = self._by_name.get(name)
        return None if setting is None else setting.value

    def enabled_by_policy(self, name: str) -> bool:
        """Return whether a policy sets a boolean to true; arguments of clients are ignored."""
        return self.policy_definition.get(name) is True

    def text_by_policy(self, name: str) -> str:
        """Return a text that a policy sets, ``""`` if none does; arguments of clients are ignored."""
        value = self.policy_definition.get(name)
        return value if isinstance(value, str) else ""

    @property
    def policy_definition(self) -> dict[str, Value]:
        """The merged policy and operator policy: RabbitMQ's ``effective_policy_definition``."""
        merged = _merged_policies(self.policy, self.operator_policy, self._offered)
        return {setting.name: setting.value for setting in merged.values()}


NO_SETTINGS: Final = EffectiveSettings([])
"""Shared empty settings: one object for all, since most queues have no settings."""


def effective(
    arguments: Arguments,
    policy: PolicyRecord | None = None,
    operator_policy: PolicyRecord | None = None,
    offered: OfferedSettings = NO_OFFERED_SETTINGS,
) -> EffectiveSettings:
    """Return the effective settings for these arguments and policies, with the merge rules of plugins."""
    if not arguments and policy is None and operator_policy is None:
        return NO_SETTINGS
    merged = _merged_policies(policy, operator_policy, offered)
    for name, value in arguments.items():
        setting = EffectiveSetting(name if name in UNPREFIXED else name.removeprefix("x-"), value, "argument")
        merged[setting.name] = _merged(merged.get(setting.name), setting, offered)
    if arguments.get("x-queue-type") == "quorum":
        for name, value in QUORUM_DEFAULTS.items():
            merged.setdefault(name, EffectiveSetting(name, value, "default"))
    return EffectiveSettings(list(merged.values()), policy, operator_policy, offered)


def _merged_policies(
    policy: PolicyRecord | None, operator_policy: PolicyRecord | None, offered: OfferedSettings
) -> dict[str, EffectiveSetting]:
    """Merge the two policies; for settings without a merge rule the operator's value is effective (R140)."""
    merged: dict[str, EffectiveSetting] = {}
    if policy is not None:
        merged = {
            name: EffectiveSetting(name, value, f"policy {policy.name}") for name, value in policy.definition.items()
        }
    if operator_policy is not None:
        for name, value in operator_policy.definition.items():
            setting = EffectiveSetting(name, value, f"operator policy {operator_policy.name}")
            merged[name] = _merged(merged.get(name), setting, offered)
    return merged


def _merged(earlier: EffectiveSetting | None, setting: EffectiveSetting, offered: OfferedSettings) -> EffectiveSetting:
    """Return the effective one of two settings of one name; without a merge rule, the later one."""
    key = KEYS.get(setting.name)
    merge = offered.merge_of(setting.name) if key is None else key.merge
    if earlier is None or merge is None:
        return setting
    one, other = _measure(earlier.value), _measure(setting.value)
    if one is None or other is None:
        return setting
    return earlier if merge(one, other) == one else setting


def _measure(value: Value) -> int | None:
    """Return a limit as a number: a count or a duration."""
    return value if isinstance(value, int) else age_ms(value)
