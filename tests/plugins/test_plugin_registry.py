"""Discovery of plugins, errors of broken ones, and the plugins of each virtual host."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from gateway.api import ConfigurationError, Properties, Value, hookimpl
from gateway.kernel.broker.directory import Directory
from gateway.patterns import compile_pattern
from gateway.plugins.registry import (
    ALWAYS_ON,
    BUILT_IN_MODULES,
    DuplicateAuthenticationMethod,
    DuplicateExchangeType,
    FoundPlugin,
    PluginRegistry,
    find_plugins,
    load_plugins,
)

SOUND = """
from gateway.api import hookimpl

@hookimpl
def gateway_exchange_types(vhost, settings):
    return {f"x-{vhost}-{settings.get('suffix', 'plain')}": lambda arguments: None}
"""


def plugin(**hooks: object) -> ModuleType:
    """Return a plugin like an imported module."""
    module = ModuleType("plugin_under_test")
    for name, hook in hooks.items():
        setattr(module, name, hook)
    return module


def registry_of(**plugins: object) -> PluginRegistry:
    registry = PluginRegistry()
    for name, module in plugins.items():
        registry.add(FoundPlugin(name, f"origin of {name}", lambda module=module: module))  # type: ignore[misc]
    return registry


def offering(*names: str) -> ModuleType:
    @hookimpl
    def gateway_exchange_types() -> dict[str, object]:
        return dict.fromkeys(names, dict)

    return plugin(gateway_exchange_types=gateway_exchange_types)


# Discovery


def test_built_in_plugins_are_loaded_like_all_others() -> None:
    names = [found.name for found in find_plugins()]
    assert names[: len(BUILT_IN_MODULES)] == list(BUILT_IN_MODULES)
    assert set(ALWAYS_ON) <= set(names)
    assert list(load_plugins().origins)[: len(BUILT_IN_MODULES)] == list(BUILT_IN_MODULES)


def test_a_file_in_the_plugin_directory_is_a_plugin_with_its_stem_as_name(tmp_path: Path) -> None:
    (tmp_path / "x-mine.py").write_text(SOUND)
    (tmp_path / "notes.txt").write_text("not a plugin")
    registry = load_plugins(tmp_path)
    assert registry.origins["x-mine"] == str(tmp_path / "x-mine.py")
    assert "notes" not in registry.origins
    assert "x-/-plain" in registry.view("/", {"x-mine": {}}).exchange_types


def test_an_entry_point_is_a_plugin_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_exchanges.py").write_text(SOUND)
    metadata = tmp_path / "acme_exchanges-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-exchanges\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gateway.plugins]\nacme = acme_exchanges\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = load_plugins()
    assert registry.origins["acme"] == "acme_exchanges of acme-exchanges"
    assert "x-/-plain" in registry.view("/", {"acme": {}}).exchange_types


def test_an_object_with_hooks_as_methods_is_a_plugin() -> None:
    class Plugin:
        @hookimpl
        def gateway_exchange_types(self, vhost: str) -> dict[str, object]:
            return {f"x-{vhost}": dict}

    assert list(registry_of(mine=Plugin()).view("north", {"mine": {}}).exchange_types) == ["x-north"]


def test_a_plugin_directory_that_is_not_a_directory_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"plugins_dir .*missing is not a directory"):
        load_plugins(tmp_path / "missing")


# Broken plugins

UNMARKED = SOUND.replace("@hookimpl", "")
MISSPELT = SOUND.replace("_types", "_type")
OTHERWISE_NAMED = SOUND.replace("gateway_exchange_types", "exchanges")
WRAPPER = SOUND.replace("@hookimpl", "@hookimpl(wrapper=True)")


def taking(parameters: str) -> str:
    return SOUND.replace("vhost, settings", parameters)


BROKEN_FILES = [
    #            the file                                  line  the reason
    pytest.param("x = 1\nimport lost\n",                   2,    "ModuleNotFoundError: No module named 'lost'"),
    pytest.param("x = 1\n\ndef f(:\n",                     3,    "SyntaxError: invalid syntax"),
    pytest.param("import json\n\njson.loads('{')\n",       3,    "JSONDecodeError: Expecting property name"),
    pytest.param("def f():\n    return 1 / 0\nf()\n",      2,    "ZeroDivisionError: division by zero"),
    pytest.param("import sys\nsys.exit(1)\n",              2,    "SystemExit: 1"),
    pytest.param("x = 1\n",                                None, "implements no hook; a hook is marked with @hookimpl"),
    pytest.param(MISSPELT,                                 4,    "unknown hook 'gateway_exchange_type'; did you mean "),
    pytest.param(OTHERWISE_NAMED,                          4,    "unknown hook 'exchanges'; there are gateway_"),
    pytest.param(UNMARKED,                                 5,    "gateway_exchange_types is not marked with @hookimpl"),
    pytest.param(WRAPPER,                                  4,    "gateway_exchange_types is a wrapper"),
    pytest.param(taking("vhost, setings, settings"),       4,    "no parameter 'setings'; it may take vhost, settings"),
    pytest.param(taking("vhost, **settings"),              4,    "no parameter '**settings'; it may take"),
    pytest.param(taking("vhost, settings={}"),             4,    "the parameter 'settings' must not have a default"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "line", "reason"), BROKEN_FILES)
def test_a_broken_file_stops_the_start_with_its_name_line_and_reason(
    tmp_path: Path, source: str, line: int | None, reason: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    place = f"{path}:{line}" if line else str(path)
    with pytest.raises(ConfigurationError) as fault:
        load_plugins(tmp_path)
    assert f"plugin 'mine' ({place}" in str(fault.value)
    assert reason in str(fault.value)


def test_a_broken_package_stops_the_start_with_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_broken.py").write_text("\n\nimport no_such_module\n")
    metadata = tmp_path / "acme_broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gateway.plugins]\nbroken = acme_broken\nlost = acme_lost\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError) as fault:
        load_plugins()
    assert f"plugin 'broken' ({tmp_path / 'acme_broken.py'}:3): ModuleNotFoundError" in str(fault.value)


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = tmp_path / "acme_lost-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-lost\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[gateway.plugins]\nlost = acme_lost.hooks\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError) as fault:
        load_plugins()
    assert str(fault.value) == (
        "plugin 'lost' (acme_lost.hooks of acme-lost): ModuleNotFoundError: No module named 'acme_lost'"
    )


def test_a_duplicate_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "exchange-direct.py").write_text(SOUND)
    with pytest.raises(ConfigurationError) as fault:
        load_plugins(tmp_path)
    assert str(fault.value) == (
        f"plugin 'exchange-direct' ({tmp_path / 'exchange-direct.py'}): "
        "module gateway_exchanges.direct has the same plugin name"
    )


def test_a_plugin_with_two_names_is_refused() -> None:
    same = offering("x-same")
    with pytest.raises(ConfigurationError, match=r"plugin 'two' \(origin of two\): is 'one' under another name"):
        registry_of(one=same, two=same)


# Plugins of a virtual host


def test_a_virtual_host_without_plugins_has_the_default_plugins() -> None:
    view = load_plugins().view("/", {})
    assert {"direct", "fanout", "topic", "headers", "x-super-stream", "x-consistent-hash"} <= set(view.exchange_types)
    assert view.names == list(ALWAYS_ON)


def test_a_virtual_host_has_only_the_plugins_it_enables() -> None:
    registry = registry_of(one=offering("x-one"), two=offering("x-two"))
    assert list(registry.view("/", {}).exchange_types) == []
    assert list(registry.view("/", {"one": {}}).exchange_types) == ["x-one"]
    assert list(registry.view("/", {"two": {}, "one": {}}).exchange_types) == ["x-two", "x-one"]


def test_each_plugin_gets_the_settings_of_its_virtual_host_only() -> None:
    seen: list[tuple[str, Mapping[str, Value]]] = []

    def remembering() -> ModuleType:
        @hookimpl
        def gateway_exchange_types(vhost: str, settings: Mapping[str, Value]) -> dict[str, object]:
            seen.append((vhost, settings))
            return {}

        return plugin(gateway_exchange_types=gateway_exchange_types)

    registry = registry_of(one=remembering(), two=remembering())
    registry.view("north", {"one": {"a": 1}, "two": {"b": 2}})
    registry.view("south", {"two": {}})
    assert seen == [("north", {"a": 1}), ("north", {"b": 2}), ("south", {})]


def test_built_in_plugins_are_called_first_unless_the_virtual_host_orders_them() -> None:
    registry = load_plugins()
    names = registry.view("/", {"exchange-modulus-hash": {}, "auth-internal": {}}).names
    assert names[-2:] == ["exchange-modulus-hash", "auth-internal"]
    assert names[:-2] == [name for name in ALWAYS_ON if name not in names[-2:]]


def test_the_other_hooks_are_joined_in_order_and_get_their_parameters() -> None:
    class Part(tuple[object, ...]):
        authenticate = permissions = published = delivered = print

    class Plugin:
        def __init__(self, *names: str) -> None:
            self.names = names

        @hookimpl
        def gateway_authenticators(self, vhost: str, directory: object, settings: object) -> list[object]:
            return [Part((name, vhost, directory, settings)) for name in self.names]

        @hookimpl
        def gateway_authorizers(self, directory: object) -> tuple[object, ...]:
            return (Part((directory,)),)

        @hookimpl
        def gateway_tracers(self, vhost: object) -> list[object]:
            return [Part((name, vhost)) for name in self.names]

    class Vhost:
        name = "/"
        node = "gateway@here"

        def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None: ...

    directory, vhost = Directory(lambda change: None, compile_pattern), Vhost()
    view = registry_of(one=Plugin("a", "b"), two=Plugin("c"), three=offering()).view(
        "/", {"two": {"k": "v"}, "one": {}, "three": {}}
    )
    in_order: list[object] = [("c", "/", directory, {"k": "v"}), ("a", "/", directory, {}), ("b", "/", directory, {})]
    assert [*view.authenticators(directory)] == in_order
    in_order = [(directory,), (directory,)]
    assert [*view.authorizers(directory)] == in_order
    in_order = [("c", vhost), ("a", vhost), ("b", vhost)]
    assert [*view.tracers(vhost)] == in_order


def test_the_error_for_a_duplicate_exchange_type_names_both_plugins() -> None:
    registry = registry_of(one=offering("x-a", "x-b"), two=offering("x-b"))
    with pytest.raises(DuplicateExchangeType) as fault:
        registry.view("/", {"one": {}, "two": {}})
    assert str(fault.value) == (
        "virtual host '/': exchange type 'x-b' is offered by two plugins, "
        "'one' (origin of one) and 'two' (origin of two)"
    )
    assert list(registry.view("/", {"two": {}}).exchange_types) == ["x-b"]


class Method:
    """An authentication method with the attributes that the registry checks."""

    def begin(self, visitor: object) -> object:
        return visitor


def methods(**offered: object) -> ModuleType:
    @hookimpl
    def gateway_authentication_methods(directory: object) -> dict[str, object]:
        return offered

    return plugin(gateway_authentication_methods=gateway_authentication_methods)


def test_authentication_methods_are_merged_and_duplicates_are_refused() -> None:
    directory, one, two = Directory(lambda change: None, compile_pattern), Method(), Method()
    registry = registry_of(one=methods(A=one), two=methods(B=two), three=methods(B=one))
    assert registry.view("/", {"one": {}, "two": {}}).authentication_methods(directory) == {"A": one, "B": two}
    with pytest.raises(DuplicateAuthenticationMethod) as fault:
        registry.view("/", {"two": {}, "three": {}}).authentication_methods(directory)
    assert str(fault.value) == (
        "virtual host '/': authentication method 'B' is offered by two plugins, "
        "'two' (origin of two) and 'three' (origin of three)"
    )


def test_an_invalid_authentication_method_stops_the_start() -> None:
    view = registry_of(mine=methods(A=1)).view("/", {"mine": {}})
    with pytest.raises(ConfigurationError, match=r"'mine' .*the authentication method 'A' has no begin\(\): 1"):
        view.authentication_methods(Directory(lambda change: None, compile_pattern))


def test_scram_is_available_in_every_virtual_host() -> None:
    directory = Directory(lambda change: None, compile_pattern)
    assert list(load_plugins().view("/", {}).authentication_methods(directory)) == ["SCRAM-SHA-256"]


def test_a_plugin_cannot_replace_a_built_in_exchange_type(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SOUND.replace("f\"x-{vhost}-{settings.get('suffix', 'plain')}\"", "'direct'"))
    registry = load_plugins(tmp_path)
    with pytest.raises(DuplicateExchangeType, match=r"'exchange-direct' .* and 'mine'"):
        registry.view("/", {"mine": {}})


def hook_that_fails(vhost: str) -> None:
    raise ValueError(f"not for {vhost}")


def hook_that_objects() -> None:
    raise ConfigurationError("`weight` must be a number")


def hook_that_returns(answer: object) -> Callable[[], object]:
    return lambda: answer


BROKEN_VIEWS = [
    pytest.param({"none": {}}, None, "enables the plugin 'none', which was not found; there are mine", id="unknown"),
    pytest.param(
        {"mine": 1}, None, "the settings of plugin 'mine' must be a table, not 1", id="settings that are not a table"
    ),
    pytest.param({"mine": {"b": 1, "a": 1}}, None, "'mine' has no settings, but was given a, b", id="settings"),
    pytest.param({"mine": {}}, hook_that_fails, "for virtual host '/': ValueError: not for /", id="fails"),
    pytest.param({"mine": {}}, hook_that_objects, "for virtual host '/': `weight` must be a number", id="objects"),
    pytest.param({"mine": {}}, hook_that_returns(None), "gateway_exchange_types returned None", id="None"),
    pytest.param({"mine": {}}, hook_that_returns([1]), "returned [1], which is not a Mapping", id="list"),
    pytest.param({"mine": {}}, hook_that_returns({"x-a": 1}), "of exchange type 'x-a' cannot be called", id="factory"),
]


@pytest.mark.parametrize(("enabled", "hook", "reason"), BROKEN_VIEWS)
def test_the_error_for_a_virtual_host_names_the_problem(
    enabled: Mapping[str, Value], hook: Callable[..., object] | None, reason: str
) -> None:
    module = offering()
    if hook is not None:
        module = plugin(gateway_exchange_types=hookimpl(specname="gateway_exchange_types")(hook))
    with pytest.raises(ConfigurationError) as fault:
        registry_of(mine=module).view("/", enabled)
    assert reason in str(fault.value)
    assert "virtual host '/'" in str(fault.value)


def test_the_error_for_an_exception_in_a_hook_names_the_plugin_s_file() -> None:
    module = plugin(gateway_exchange_types=hookimpl(specname="gateway_exchange_types")(hook_that_fails))
    with pytest.raises(ConfigurationError) as fault:
        registry_of(mine=module).view("/", {"mine": {}})
    line = hook_that_fails.__code__.co_firstlineno + 1
    assert f"plugin 'mine' ({__file__}:{line})" in str(fault.value)
