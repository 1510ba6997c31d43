"""The hooks of plugins and the names of ``gateway.api`` and ``gateway.testing``, from their docstrings."""

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from docs.tools.reference.table import NOTE, code, from_docstring, table
from gateway import api, hookspecs, testing

_HEAD: Final = f"""\
# The interface of plugins

[plugins](../plugins/README.md#the-hooks) has the whole text of each hook, [testing](../plugins/testing.md) the use of
the checks. {NOTE}
"""


def page() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def hook_names() -> list[str]:
    """Return the names of all hooks, in the order of their module."""
    return [name for name in vars(hookspecs) if name.startswith("gateway_") and callable(getattr(hookspecs, name))]


def _lines() -> Iterator[str]:
    yield _HEAD
    yield "## Hooks\n"
    yield from table(("Hook", "Parameters", "Purpose"), map(_hook, hook_names()))
    yield "\n## Names of `gateway.api`\n"
    yield "What a plugin may import.\n"
    yield from _names(api)
    yield "\n## Names of `gateway.testing`\n"
    yield "What tests may import.\n"
    yield from _names(testing)


def _hook(name: str) -> tuple[str, str, str]:
    hook: Any = getattr(hookspecs, name)
    parameters = ", ".join(code(parameter) for parameter in inspect.signature(hook).parameters)
    return f"[`{name}`](../plugins/README.md#{name})", parameters, from_docstring(hook.__doc__ or "")


def _names(module: ModuleType) -> Iterator[str]:
    yield from table(("Name", "Meaning"), ((code(name), _meaning(module, name)) for name in module.__all__))


def _meaning(module: ModuleType, name: str) -> str:
    """Return the first paragraph of an object's own docstring; a type alias has none."""
    value: Any = getattr(module, name)
    if isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isfunction(value):
        return from_docstring(value.__doc__ or "")
    return "a type alias"
