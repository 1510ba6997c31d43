"""The plugin manager finds the hooks that pluggy finds."""

from types import ModuleType

import pluggy
import pytest

from gateway.hookspecs import PROJECT
from gateway.plugins.manager import HookManager
from gateway.plugins.registry import find_plugins

hookimpl = pluggy.HookimplMarker(PROJECT)


class Home:
    """Has hooks that a module takes over."""

    @hookimpl
    def bound(self) -> None:
        """Do nothing."""

    @staticmethod
    @hookimpl
    def static() -> None:
        """Do nothing."""


def odd_module() -> ModuleType:
    module = ModuleType("odd")
    module.marked = hookimpl(lambda: None)  # type: ignore[attr-defined]
    module.plain = lambda: None  # type: ignore[attr-defined]
    module.bound = Home().bound  # type: ignore[attr-defined]
    module.wrapped = hookimpl(staticmethod(lambda: None))  # type: ignore[attr-defined, type-var]
    module.static = vars(Home)["static"]  # type: ignore[attr-defined]
    module.number = 3  # type: ignore[attr-defined]
    return module


PLUGINS = [odd_module(), Home(), Home, *(found.load() for found in find_plugins())]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: getattr(plugin, "__name__", "object"))
def test_the_hooks_of_a_plugin_are_those_that_pluggy_finds(plugin: object) -> None:
    quick, slow = HookManager(PROJECT), pluggy.PluginManager(PROJECT)
    found = {name: quick.parse_hookimpl_opts(plugin, name) for name in dir(plugin)}
    assert found == {name: slow.parse_hookimpl_opts(plugin, name) for name in dir(plugin)}
    assert any(options is not None for options in found.values())
