"""Validation of plugins, and error messages that name the plugin's file and line."""

import difflib
import importlib
import importlib.metadata
import inspect
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final
from weakref import WeakSet

import pluggy
import pydantic

from gateway import hookspecs
from gateway.kernel.errors import ConfigurationError

HOOK_PREFIX: Final = "gateway_"

#: ``*args`` and ``**kwargs``: pluggy passes no arguments to them.
_COLLECTING: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

#: Modules whose hooks were checked. A process of tests or of the simulation starts brokers by the thousand.
_checked_modules: Final[WeakSet[ModuleType]] = WeakSet()

#: Files between the plugin and the caller in a traceback; their frames do not help the plugin's author.
_MACHINERY: Final = (
    "<frozen importlib",
    *(str(Path(inspect.getfile(package)).parent) for package in (pluggy, pydantic, importlib, importlib.metadata)),
    str(Path(__file__).parent),  # this package
)


def broken(name: str, origin: str, error: BaseException, when: str = "") -> ConfigurationError:
    """Return the operator's error message for an exception of a plugin."""
    if isinstance(error, ConfigurationError):
        reason = str(error)
    elif isinstance(error, SyntaxError):
        reason = f"{type(error).__name__}: {error.msg}"
    else:
        reason = f"{type(error).__name__}: {error}"
    return ConfigurationError(f"plugin {name!r} ({_place(error) or origin}){when}: {reason}")


def _place(error: BaseException) -> str | None:
    """Return file and line in the plugin: the innermost frame in the plugin's own file."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_MACHINERY)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None


def check_hooks(plugins: pluggy.PluginManager, name: str, origin: str, plugin: object) -> None:
    """Check a plugin's hooks against their specifications; a module that fulfilled them is not checked again.

    :raises ConfigurationError: if a hook is unknown, not marked, a wrapper or has wrong parameters, or there is none.
    """
    if plugin in _checked_modules:
        return
    found = 0
    for attribute in dir(plugin):
        options = plugins.parse_hookimpl_opts(plugin, attribute)
        if options is not None:
            function = getattr(plugin, attribute)
            problem = _problem(options.get("specname") or attribute, options, function)
            found += 1
        elif attribute.startswith(HOOK_PREFIX) and _is_own_function(plugin, attribute):
            function = getattr(plugin, attribute)
            problem = f"{attribute} is not marked with @hookimpl"
        else:
            continue
        if problem:
            raise ConfigurationError(f"plugin {name!r} ({_definition(function)}): {problem}")
    if not found:
        raise ConfigurationError(f"plugin {name!r} ({origin}): implements no hook; a hook is marked with @hookimpl")
    if isinstance(plugin, ModuleType):
        _checked_modules.add(plugin)


def takes_settings(plugins: pluggy.PluginManager, plugin: object) -> bool:
    """Whether any hook of a plugin takes ``settings``."""
    return any(
        "settings" in implementation.argnames
        for caller in plugins.get_hookcallers(plugin) or ()
        for implementation in caller.get_hookimpls()
        if implementation.plugin is plugin
    )


def _problem(hook: str, options: pluggy.HookimplOpts, function: Callable[..., object]) -> str | None:
    specification = getattr(hookspecs, hook, None)
    if not hook.startswith(HOOK_PREFIX) or specification is None:
        return f"unknown hook {hook!r}{_suggestion(hook)}"
    if options.get("wrapper") or options.get("hookwrapper"):
        return f"{hook} is a wrapper; wrappers are not supported, because each plugin is called separately"
    allowed = _parameters_of(specification)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in allowed or parameter.kind in _COLLECTING:
            return f"{hook} has no parameter {str(parameter)!r}; it may take {', '.join(allowed) or 'none'}"
        if parameter.default is not parameter.empty:
            return f"{hook}: the parameter {parameter.name!r} must not have a default: pluggy would not pass it"
    return None


@cache
def _parameters_of(specification: Callable[..., object]) -> list[str]:
    return list(inspect.signature(specification).parameters)


def _suggestion(hook: str) -> str:
    known = [name for name in vars(hookspecs) if name.startswith(HOOK_PREFIX)]
    close = difflib.get_close_matches(hook, known, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _is_own_function(plugin: object, attribute: str) -> bool:
    """Whether the plugin defines this function and does not import it."""
    value = inspect.getattr_static(plugin, attribute)
    home = getattr(plugin, "__name__", type(plugin).__module__)
    return inspect.isfunction(value) and value.__module__ == home


def _definition(function: Callable[..., object]) -> str:
    code = inspect.unwrap(function).__code__
    return f"{code.co_filename}:{code.co_firstlineno}"
