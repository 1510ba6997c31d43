"""A missing or broken plugin does not stop the broker: it is skipped and reported."""

from pathlib import Path

import pytest

from gateway.access import Access, Principal
from gateway.api import ConfigurationError
from gateway.cli.check import check_plugins
from gateway.config import load
from gateway.kernel.broker.directory import Directory
from gateway.kernel.errors import NotAllowed
from gateway.patterns import compile_pattern
from gateway.plugins.registry import load_plugins

TYPES = "from gateway.api import hookimpl\n\n@hookimpl\ndef gateway_exchange_types():\n    return {'x-mine': dict}\n"
FAILING = "from gateway.api import hookimpl\n\n@hookimpl\ndef HOOK():\n    raise RuntimeError('down')\n"
ACCESS_HOOKS = ("gateway_authenticators", "gateway_authentication_methods", "gateway_authorizers")


def directory() -> Directory:
    return Directory(lambda change: None, compile_pattern)


def entered(path: Path, plugin: str = "mine") -> str:
    """Return why access to a virtual host with the plugin is refused; empty if guests have access."""
    view = load_plugins(path, is_lenient=True).view("/", {plugin: {}}, is_lenient=True)
    view.authenticators(directory())
    view.authentication_methods(directory())
    access = Access([], view.authorizers(directory()), closed=view.objection)
    with pytest.raises(NotAllowed) as refused:
        access.enter(Principal("unknown"), "/")
    return str(refused.value).removeprefix("access to vhost '/' refused for user 'unknown'").removeprefix(": ")


def test_a_file_that_cannot_be_loaded_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import lost\n")
    (tmp_path / "sound.py").write_text(TYPES)
    registry = load_plugins(tmp_path, is_lenient=True)
    assert "No module named 'lost'" in registry.broken["mine"]
    view = registry.view("/", {"mine": {}, "sound": {}}, is_lenient=True)
    assert "x-mine" in view.exchange_types
    assert list(view.inert) == ["mine"]
    assert view.objection == ""


def test_a_plugin_with_a_failing_hook_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING.replace("HOOK", "gateway_exchange_types"))
    view = load_plugins(tmp_path, is_lenient=True).view("/", {"mine": {}}, is_lenient=True)
    assert "RuntimeError: down" in view.inert["mine"]
    assert "fanout" in view.exchange_types


def test_the_first_of_two_plugins_with_the_same_type_is_used(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(TYPES)
    (tmp_path / "two.py").write_text(TYPES)
    view = load_plugins(tmp_path, is_lenient=True).view("/", {"one": {}, "two": {}}, is_lenient=True)
    assert view.plugin_of("x-mine") == "one"
    assert list(view.inert) == ["two"]


@pytest.mark.parametrize("hook", ACCESS_HOOKS)
def test_access_is_refused_while_an_access_plugin_fails(hook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING.replace("HOOK", hook))
    assert "its plugin 'mine' cannot be used" in entered(tmp_path)


@pytest.mark.parametrize("hook", ACCESS_HOOKS)
def test_access_is_refused_while_an_access_plugin_cannot_be_loaded(hook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import lost\n" + FAILING.replace("HOOK", hook))
    assert "its plugin 'mine' cannot be used" in entered(tmp_path)


def test_access_is_refused_while_a_missing_plugin_might_be_an_access_plugin(tmp_path: Path) -> None:
    assert "enables the plugin 'gone', which was not found" in entered(tmp_path, "gone")


def test_access_is_granted_while_an_exchange_plugin_is_broken(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING.replace("HOOK", "gateway_exchange_types"))
    assert entered(tmp_path) == ""


# gateway check


@pytest.mark.parametrize("hook", ["gateway_exchange_types", "gateway_tracers", *ACCESS_HOOKS])
def test_check_calls_every_hook(hook: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING.replace("HOOK", hook))
    settings = load(None, [f"plugins_dir={tmp_path}", 'vhosts."/".plugins.mine={}', f"data={tmp_path / 'data'}"])
    with pytest.raises(ConfigurationError, match="RuntimeError: down"):
        check_plugins(settings)


@pytest.mark.parametrize(
    ("hook", "method"),
    [
        ("gateway_authenticators", "authenticate"),
        ("gateway_authorizers", "permissions"),
        ("gateway_tracers", "published"),
    ],
)
def test_check_looks_for_the_methods_of_what_a_hook_returns(hook: str, method: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FAILING.replace("HOOK", hook).replace("raise RuntimeError('down')", "return [5]"))
    settings = load(None, [f"plugins_dir={tmp_path}", 'vhosts."/".plugins.mine={}', f"data={tmp_path / 'data'}"])
    with pytest.raises(ConfigurationError, match=rf"{hook} returned 5, which has no {method}\(\)"):
        check_plugins(settings)


# The directory


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_a_directory_that_other_users_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(ConfigurationError, match=f"its mode {mode:04o}"):
        load_plugins(tmp_path, is_lenient=True)


@pytest.mark.parametrize("mode", [0o666, 0o664])
def test_a_file_that_other_users_can_write_to_is_refused_and_not_executed(mode: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\n")
    (tmp_path / "mine.py").chmod(mode)
    with pytest.raises(ConfigurationError, match=rf"mine.py must belong to root .* its mode {mode:04o}"):
        load_plugins(tmp_path, is_lenient=True)
    assert not (tmp_path / "executed").exists()


def test_a_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "plugins"
    directory.mkdir()
    if directory.stat().st_uid == 0:
        import os

        os.chown(directory, 12345, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(ConfigurationError, match="must belong to root or to the user of the broker"):
        load_plugins(directory)


@pytest.mark.parametrize("name", ["test_mine.py", "mine_test.py", "conftest.py"])
def test_a_test_file_next_to_a_plugin_is_not_a_plugin(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("raise RuntimeError('executed')\n")
    (tmp_path / "mine.py").write_text(TYPES)
    registry = load_plugins(tmp_path)
    assert registry.origins["mine"] == str(tmp_path / "mine.py")
    assert Path(name).stem not in registry.origins
