"""Paths into JSON, for rules that replace parts of messages and of entries of the audit record."""

import re
from dataclasses import dataclass
from typing import Any, Final, Self

REDACTED: Final = "***"
"""What takes the place of a part."""

_EACH: Final = "*"

_STEP: Final = re.compile(r"\.([^\s.\[\]]+)|\[\*\]")


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path such as ``$.items[*].price``; ``$`` is the whole value, and ``*`` each member or item."""

    steps: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the path of a text whose form was checked; text that is no step is ignored."""
        return cls(tuple(match[1] or _EACH for match in _STEP.finditer(text)))

    def redact(self, value: Any) -> Any:  # Any: JSON
        """Return a copy of a value with what the path names replaced; the value itself if it has nothing there."""
        return _redacted(value, self.steps)


def _redacted(value: object, steps: tuple[str, ...]) -> object:
    if not steps:
        return REDACTED
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        changed = {
            name: inner
            for name, item in value.items()
            if step in (name, _EACH) and (inner := _redacted(item, rest)) is not item
        }
        return {**value, **changed} if changed else value
    if isinstance(value, list) and step == _EACH:
        items = [_redacted(item, rest) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value
