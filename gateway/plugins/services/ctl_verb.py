"""Verbs that plugins add to gatewayctl. They are descriptions: gatewayctl executes no code of a plugin."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from gateway.plugins.services.http_resource import HttpMethod, HttpResource

_NAME: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_COLUMN: Final = re.compile(r"[^\s,]{1,64}")

ArgumentType: TypeAlias = Literal["text", "integer", "number", "boolean"]

_TYPES: Final[tuple[str, ...]] = get_args(ArgumentType)

#: Options that every verb of gatewayctl has.
_TAKEN: Final = frozenset(
    {"vhost", "formatter", "quiet", "silent", "no_table_headers", "url", "username", "password", "cacert", "timeout"}
    | {"node", "longnames", "help"}
)


@dataclass(frozen=True, slots=True)
class VerbArgument:
    """An argument of a verb. An option is given as ``--name VALUE``, any other argument by its position.

    ``values`` are the allowed values, if only some are; otherwise gatewayctl converts the value to ``type``. An
    argument that is not required follows those that are.
    """

    name: str
    description: str = ""
    type: ArgumentType = "text"
    is_option: bool = False
    is_required: bool = True
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CtlVerb:
    """A verb of gatewayctl: ``gatewayctl PLUGIN NAME ARGUMENT...``. It calls a resource of the same plugin.

    ``path`` and ``method`` are those of the resource. Arguments that are variables of the path are put there; the
    others are sent in the query (GET, DELETE) or as a JSON object (PUT, POST). A list of objects is printed with these
    ``columns``, by default all in the order of the first object.
    """

    name: str
    path: str
    description: str = ""
    method: HttpMethod = "GET"
    arguments: Sequence[VerbArgument] = ()
    columns: Sequence[str] = ()


def problem_of_verb(verb: CtlVerb, resources: Sequence[HttpResource]) -> str | None:
    """Return the fault in a verb that a plugin offers, or ``None``."""
    where = f"the verb {verb.name!r}"
    if not _NAME.fullmatch(verb.name):
        return f"{where}: a name is lower-case letters, digits and single hyphens or underscores"
    resource = next((each for each in resources if (each.method, each.path) == (verb.method, verb.path)), None)
    if resource is None:
        return f"{where} calls {verb.method} {verb.path!r}, which is no resource of the plugin"
    for column in verb.columns:
        if not isinstance(column, str) or not _COLUMN.fullmatch(column):
            return f"{where} has the column {column!r}, which has spaces or commas, or is empty or too long"
    return _problem_of_arguments(verb, resource, where)


def _problem_of_arguments(verb: CtlVerb, resource: HttpResource, where: str) -> str | None:
    has_optional = False
    seen: set[str] = set()
    for argument in verb.arguments:
        if not isinstance(argument, VerbArgument) or not _NAME.fullmatch(argument.name):
            return f"{where} has the argument {argument!r}, whose name is not one"
        name = argument.name.replace("-", "_")
        if name in seen or (argument.is_option and name in _TAKEN):
            return f"{where} has an argument {argument.name!r} besides another of this name"
        seen.add(name)
        if argument.type not in _TYPES:
            return f"{where}: the type of {argument.name!r} is not one of {', '.join(_TYPES)}"
        if not argument.is_option and argument.is_required and has_optional:
            return f"{where} requires the argument {argument.name!r} after one that may be missing"
        has_optional = has_optional or not (argument.is_option or argument.is_required)
    given = {argument.name for argument in verb.arguments if argument.is_required}
    missing = [variable for variable in resource.variables if variable not in given]
    return f"{where} has no required argument {missing[0]!r} for the variable of its path" if missing else None
