"""The pages about plugins are correct, and their examples run."""

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet

from gateway import hookspecs
from gateway.access import Access
from gateway.api import Answer, Challenge, ConfigurationError, Directory, Failure, Principal, Success, Value, Visitor
from gateway.config import load
from gateway.patterns import compile_pattern
from gateway.plugins.registry import ALWAYS_ON, BUILT_IN_MODULES, ENTRY_POINT_GROUP, PluginRegistry, load_plugins
from gateway.testing import MemoryBroker, StandInVhost, check_exchange_type

PAGES = Path(__file__).parents[2] / "docs" / "plugins"
HOOKS = [name for name in vars(hookspecs) if name.startswith("gateway_")]


def examples(page: str) -> dict[str, str]:
    """Return the code examples of a page by the file name in their first lines."""
    blocks = re.findall(
        r"^```(?:python|toml)\n# (.+?)\n(.*?)^```$", (PAGES / page).read_text(), re.MULTILINE | re.DOTALL
    )
    return dict(blocks)


EXAMPLES = examples("exchange-type.md")


@pytest.fixture
def plugins_dir(tmp_path: Path) -> Path:
    """Return the plugin directory after the page's first step."""
    (tmp_path / "modulus.py").write_text(EXAMPLES["modulus.py"])
    return tmp_path


@pytest.fixture
def modulus(plugins_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(plugins_dir)
    yield importlib.import_module("modulus")
    del sys.modules["modulus"]


def enabled(plugins_dir: Path, example: str) -> dict[str, dict[str, dict[str, Value]]]:
    """Return the plugins by virtual host of an example configuration, read as the gateway does."""
    file = plugins_dir / "gateway.toml"
    file.write_text(EXAMPLES[example].replace("/etc/gateway/plugins", str(plugins_dir)))
    settings = load(file)
    assert settings.plugins_dir == plugins_dir
    return {name: vhost.plugins for name, vhost in settings.vhosts.items()}


def exchange_types(registry: PluginRegistry, vhost: str, plugins: dict[str, dict[str, Value]]) -> list[str]:
    return list(registry.view(vhost, dict(plugins)).exchange_types)


def test_the_plugin_of_the_page_has_about_twenty_lines() -> None:
    lines = [line for line in EXAMPLES["modulus.py"].splitlines() if line.strip()]
    assert len(lines) <= 25


def test_the_exchange_type_of_the_page_fulfils_the_contract(modulus: ModuleType) -> None:
    check_exchange_type(modulus.Modulus)


def test_the_tests_of_the_page_pass(modulus: ModuleType) -> None:
    names: dict[str, object] = {}
    exec(EXAMPLES["test_modulus.py"], names)
    tests = [test for name, test in names.items() if name.startswith("test_") and callable(test)]
    assert len(tests) == 2
    for test in tests:
        test()


def test_the_configuration_of_the_page_enables_the_type(plugins_dir: Path) -> None:
    by_vhost = enabled(plugins_dir, "gateway.toml")
    registry = load_plugins(plugins_dir)
    assert "x-modulus" in exchange_types(registry, "/", by_vhost["/"])
    assert "x-modulus" not in exchange_types(registry, "staging", {})


def test_the_client_of_the_page_declares_the_type_that_the_plugin_offers() -> None:
    source = EXAMPLES["orders.py"]
    compile(source, "orders.py", "exec")
    assert 'exchange_type="x-modulus"' in source


def test_the_setting_of_the_page_names_the_type(plugins_dir: Path) -> None:
    with (plugins_dir / "modulus.py").open("a") as file:
        file.write(EXAMPLES["modulus.py, the hook"])
    by_vhost = enabled(plugins_dir, "gateway.toml, with a setting")
    registry = load_plugins(plugins_dir)
    assert exchange_types(registry, "/", by_vhost["/"])[-1] == "x-modulus"
    assert exchange_types(registry, "staging", by_vhost["staging"])[-1] == "x-spread"
    with pytest.raises(ConfigurationError, match="settings of plugin 'modulus': name: must be a string, not 1"):
        exchange_types(registry, "/", {"modulus": {"name": 1}})


def test_the_entry_point_of_the_page_is_in_our_group() -> None:
    project = tomllib.loads(EXAMPLES["pyproject.toml"])["project"]
    assert project["entry-points"][ENTRY_POINT_GROUP] == {"modulus": "acme_modulus"}


def test_the_model_of_the_page_refuses_settings_as_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text(examples("README.md")["greeting.py"])
    with pytest.raises(ConfigurationError) as refused:
        load_plugins(tmp_path).view("/", {"greeting": {"limit": 0}})
    assert f"```text\n{refused.value}\n```" in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("hook", HOOKS)
def test_the_list_of_hooks_contains_each_specification(hook: str) -> None:
    source = inspect.getsource(getattr(hookspecs, hook))
    specification = source.removeprefix("@hookspec\n").removesuffix("    raise NotImplementedError\n")
    page = (PAGES / "README.md").read_text()
    assert f"### `{hook}`\n\n```python\n{specification}```\n" in page


def test_the_list_of_hooks_contains_the_common_rules() -> None:
    assert hookspecs.__doc__ is not None
    laws = hookspecs.__doc__[hookspecs.__doc__.index("* ") :].strip().replace("``", "`")
    assert laws in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("name", BUILT_IN_MODULES)
def test_the_list_of_built_in_plugins_shows_which_are_always_enabled(name: str) -> None:
    rows = [line for line in (PAGES / "README.md").read_text().splitlines() if line.startswith(f"| `{name}` |")]
    assert [row.split("|")[-2].strip() for row in rows] == ["always" if name in ALWAYS_ON else "by name"]


RIDDLE = b"What walks on four legs in the morning?"


def test_the_authentication_method_of_the_page_accepts_the_right_answer(tmp_path: Path) -> None:
    (tmp_path / "riddle.py").write_text(examples("README.md")["riddle.py"])
    view = load_plugins(tmp_path).view("/", {"riddle": {}})
    access = Access([], [], methods=view.authentication_methods(Directory(lambda change: None, compile_pattern)))
    for data, last in ((b"man", Success(Principal("oedipus"))), (b"dog", Failure("wrong answer"))):
        dialogue = access.start_dialogue("RIDDLE", Visitor("/"))
        assert dialogue is not None
        received: list[Answer] = []
        dialogue.step(b"", received.append)
        dialogue.step(data, received.append)
        assert received == [Challenge(RIDDLE), last]


def test_every_exchange_type_is_in_the_page_of_exchange_types() -> None:
    page = (PAGES / "exchange-types.md").read_text()
    types = [*load_plugins().view("/", {}).exchange_types, "x-delayed-message", "x-message-deduplication"]
    missing = [name for name in types if f"`{name}`" not in page]
    assert missing == []


def run_the_tests_of(name: str, page: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Write the plugin of a page into a folder, and run the tests of the page; return their number."""
    (folder / f"{name}.py").write_text(page[f"{name}.py"])
    monkeypatch.syspath_prepend(folder)
    names: dict[str, object] = {}
    exec(page[f"test_{name}.py"], names)
    tests = [test for name, test in names.items() if name.startswith("test_") and callable(test)]
    for test in tests:
        test()
    del sys.modules[name]
    return len(tests)


def broker_of(page: Mapping[str, str], folder: Path) -> MemoryBroker:
    """Return a broker whose virtual host ``shop`` has the plugins of a page's settings; ``/`` has none of them."""
    file = folder / "gateway.toml"
    file.write_text(page["gateway.toml"].replace("/etc/gateway/plugins", str(folder)))
    settings = load(file)
    broker = MemoryBroker(registry=load_plugins(settings.plugins_dir))
    broker.kernel.declare_vhost("shop", plugins=settings.vhosts["/"].plugins)  # type: ignore[arg-type]
    return broker


def test_the_queue_features_of_their_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = examples("queue-feature.md")
    assert run_the_tests_of("acme", page, tmp_path, monkeypatch) == 2
    broker = broker_of(page, tmp_path)
    shop = broker.kernel.vhost("shop")
    assert shop.queue_features.settings.arguments == ("x-acme-valid-until", "x-acme-max-size")
    assert broker.vhost.queue_features.settings.arguments == ()


def test_the_interceptor_of_its_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = examples("interceptor.md")
    assert run_the_tests_of("orders", page, tmp_path, monkeypatch) == 2
    broker = broker_of(page, tmp_path)
    assert broker.kernel.vhost("shop").interception.publishing is not None
    assert broker.vhost.interception.publishing is None


def test_the_settings_of_the_built_in_interceptors_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    descriptors = tmp_path / "shop.binpb"
    order = FileDescriptorProto(name="shop.proto", package="shop", message_type=[DescriptorProto(name="Order")])
    descriptors.write_bytes(FileDescriptorSet(file=[order]).SerializeToString())
    text = "\n".join(examples("interceptors.md").values())
    file.write_text(text.replace("/etc/gateway/shop.binpb", str(descriptors)))
    plugins = load(file).vhosts["/"].plugins
    assert sorted(plugins) == sorted(name for name in BUILT_IN_MODULES if name.startswith("interceptor-"))
    broker = MemoryBroker()
    vhost = broker.kernel.declare_vhost("shop", plugins=plugins)  # type: ignore[arg-type]
    assert vhost.interception.publishing is not None
    assert vhost.interception.delivering is not None


def run_tests(source: str) -> int:
    """Run the test functions of an example; return their number."""
    names: dict[str, object] = {}
    exec(source, names)
    tests = [test for name, test in names.items() if name.startswith("test_") and callable(test)]
    for test in tests:
        test()
    return len(tests)


def test_the_services_of_their_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = examples("operators.md")
    (tmp_path / "customers.py").write_text(page["customers.py"])
    monkeypatch.syspath_prepend(tmp_path)
    assert run_tests(page["test_customers.py"]) == 2
    del sys.modules["customers"]
    view = load_plugins(tmp_path).view("shop", {"customers": {}})
    view.offer_services(StandInVhost("shop"))
    assert [offered.service.name for offered in view.services.verbs] == ["list", "show", "reset"]
    assert [offered.service.title for offered in view.services.panels] == ["Customers"]
    assert [offered.plugin for offered in view.services.resources] == ["customers"] * 3
