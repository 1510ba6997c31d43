"""Settings of queues that plugins offer: names of arguments and policy keys, with the validation of their values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from gateway.kernel.errors import Refused
from gateway.kernel.faults import BadAnswer, described, shown
from gateway.kernel.messages.message import Value

SettingCheck: TypeAlias = Callable[[Value], str | None]
"""Returns what is wrong with a value, or ``None`` if it is valid."""

Merge: TypeAlias = Callable[[int, int], int]
"""Returns the effective one of two values."""


@dataclass(frozen=True, slots=True)
class QueueSetting:
    """One setting of a queue feature: the ``check`` of its value, and its ``merge`` rule.

    ``check`` returns what is wrong with a value, as a part of a sentence (``must be a positive integer``), or ``None``.

    If an argument and a policy both set it, ``merge`` selects one of two numbers, such as the smaller one by ``min``;
    without it the argument has precedence. Operator policies may set a setting with a ``merge`` only.
    """

    check: SettingCheck
    merge: Merge | None = None


class OfferedSettings:
    """The settings that the plugins of one virtual host offer, by policy key; the argument has the prefix ``x-``.

    ``on_error`` is called with the name of a setting whose check raised, or returned something that is not a text.
    """

    def __init__(
        self,
        settings: Mapping[str, QueueSetting] = MappingProxyType({}),
        on_error: Callable[[str, BaseException], None] = lambda name, error: None,
    ) -> None:
        self._settings = settings
        self._on_error = on_error
        self.arguments: Final = tuple(f"x-{name}" for name in settings)

    def __contains__(self, name: object) -> bool:
        return name in self._settings

    def merge_of(self, name: str) -> Merge | None:
        """Return the merge rule of a setting; ``None`` if it has none or is unknown."""
        setting = self._settings.get(name)
        return None if setting is None else setting.merge

    def fault_of(self, name: str, value: Value) -> str | None:
        """Return the fault in the value of a setting; ``None`` if it is valid, or the setting is unknown."""
        setting = self._settings.get(name)
        if setting is None:
            return None
        try:
            fault = setting.check(value)
            if fault is not None and not isinstance(fault, str):
                raise BadAnswer(f"the check of '{name}' returned {shown(fault)}, which is neither a text nor None")
        except Refused as refusal:
            return str(refusal)
        except BaseException as error:  # plugin code
            self._on_error(name, error)
            return f"its check failed: {described(error)}"
        return fault


NO_OFFERED_SETTINGS: Final = OfferedSettings()
"""Shared: most virtual hosts have no plugin with queue features."""
