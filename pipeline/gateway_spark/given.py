"""The options of a source or sink, checked against the known ones."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

from gateway_spark.choices import Reader, read
from gateway_spark.errors import OptionError

#: Options that Spark itself adds.
_SPARKS_OWN: Final = frozenset({"path", "paths", "checkpointlocation", "queryname"})


class Given:
    """The given options by name; names are case-insensitive."""

    def __init__(self, options: Mapping[str, str], known: Mapping[str, Reader]) -> None:
        by_lower = {name.lower(): name for name in known}
        self._value_by_name: dict[str, Any] = {}
        for spelled, value in options.items():
            if spelled.lower() in _SPARKS_OWN:
                continue
            name = by_lower.get(spelled.lower())
            if name is None:
                raise OptionError(f"there is no option '{spelled}'{hint(spelled, by_lower)}")
            self._value_by_name[name] = read(name, value, known[name])

    def __contains__(self, name: str) -> bool:
        return name in self._value_by_name

    def get(self, name: str, default: Any = None) -> Any:
        """Return the parsed value of an option."""
        return self._value_by_name.get(name, default)

    def only_one(self, *names: str) -> str | None:
        """Return the one option that is given. :raises OptionError: if more than one is."""
        given = [name for name in names if name in self]
        if len(given) > 1:
            raise OptionError(f"give one of the options {listed(names)}, not {listed(given, 'and')}")
        return given[0] if given else None

    def within(self, options: Mapping[str, str], known: Mapping[str, Reader], *exclusive: tuple[str, ...]) -> "Given":
        """Return the known options of this and of others, which apply instead.

        One of the ``exclusive`` names replaces all of its group. :raises OptionError: if one of the others is invalid.
        """
        merged = Given(options, known)
        replaced = {name for group in exclusive if any(name in merged for name in group) for name in group}
        for name, value in self._value_by_name.items():
            if name in known and name not in merged and name not in replaced:
                merged._value_by_name[name] = value
        return merged

    def refuse(self, names: tuple[str, ...], reason: str) -> None:
        """Check that none of these options is given. :raises OptionError: with the first that is."""
        for name in names:
            if name in self:
                raise OptionError(f"option '{name}' {reason}")


def hint(spelled: str, by_lower: Mapping[str, str]) -> str:
    """Return the most similar name, or the list of all names."""
    near = get_close_matches(spelled.lower(), by_lower, n=1)
    if near:
        return f", did you mean '{by_lower[near[0]]}'?"
    return f"; there are {listed(sorted(by_lower.values()), 'and')}"


def listed(names: "tuple[str, ...] | list[str]", word: str = "or") -> str:
    """Return names as an enumeration."""
    quoted = [f"'{name}'" for name in names]
    return f" {word} ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
