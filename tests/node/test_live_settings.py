"""The settings of a running node: reloads, changes at run time, and where each value comes from."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.config import Settings, load_with_origins
from gateway.kernel.errors import ConfigurationError
from gateway.logs.setup import stop_logging
from gateway.node.control.live_settings import LiveSettings


class Node:
    """Settings from a file and a command line, as a node uses them."""

    def __init__(self, directory: Path, *overrides: str) -> None:
        self.file = directory / "gateway.toml"
        self.file.write_text("")
        self.overrides = overrides
        self.applied: list[Settings] = []
        self.settings = self.start()

    def start(self) -> LiveSettings:
        """Return the settings of a new start."""
        return LiveSettings(self.read(), self.read, [], self.applied.append)

    def read(self) -> Any:
        return load_with_origins(self.file, self.overrides)

    def row(self, key: str) -> dict[str, Any]:
        return next(row for row in self.settings.rows(lambda plugin: ()) if row["key"] == key)

    def shown(self, key: str) -> tuple[object, str]:
        """Return the value of a setting and its origin."""
        return self.row(key)["value"], self.row(key)["origin"]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    yield Node(tmp_path, "amqp.frame_max=8192")
    stop_logging()


def test_a_row_says_where_its_value_comes_from(node: Node) -> None:
    node.file.write_text('[vhosts."/"]\ntracing = true\n[mqtt]\nprefetch = 7\n')
    node.settings = node.start()
    assert node.shown("mqtt.prefetch") == (7, str(node.file))
    assert node.shown("amqp.frame_max") == (8192, "command line")
    assert node.shown("amqp.channel_max") == (2047, "default")
    assert node.row('vhosts."/"')["origin"] == str(node.file)


def test_a_secret_is_hidden(node: Node) -> None:
    node.file.write_text('default_pass = "hunter2"')
    node.settings = node.start()
    assert node.shown("default_pass") == ("(hidden)", str(node.file))


def test_a_change_at_run_time_applies_at_once(node: Node) -> None:
    node.settings.change("disk_free_limit", "60MB")
    assert [settings.disk_free_limit for settings in node.applied] == [60_000_000]
    assert node.shown("disk_free_limit") == ("60MB", "run time")


def test_a_change_at_run_time_does_not_survive_a_restart(node: Node) -> None:
    node.settings.change("disk_free_limit", "60MB")
    node.settings = node.start()
    assert node.shown("disk_free_limit") == ("50MB", "default")


def test_a_reload_keeps_changes_at_run_time_and_reports_them(node: Node) -> None:
    node.settings.change("disk_free_limit", "60MB")
    node.file.write_text('disk_free_limit = "70MB"\nmemory_high_watermark = 0.3\nnode_name = "b"\n')
    result = node.settings.reload()
    assert (result.applied, result.needs_restart, result.kept) == (
        ["memory_high_watermark"],
        ["node_name"],
        ["disk_free_limit"],
    )
    assert node.shown("disk_free_limit") == ("60MB", "run time")
    assert node.row("node_name")["configured"] == "b"


def test_restoring_gives_the_configured_value_of_the_last_reload(node: Node) -> None:
    node.settings.change("disk_free_limit", "60MB")
    node.file.write_text('disk_free_limit = "70MB"')
    node.settings.reload()
    assert node.settings.restore("disk_free_limit")
    assert node.shown("disk_free_limit") == ("70MB", str(node.file))
    assert node.applied[-1].disk_free_limit == 70_000_000
    assert not node.settings.restore("disk_free_limit")


def test_a_change_at_run_time_does_not_read_the_file(node: Node) -> None:
    node.file.write_text("memory_high_watermark = 0.3")
    node.settings.change("disk_free_limit", "60MB")
    assert node.shown("memory_high_watermark") == (0.6, "default")


REFUSED = [
    ("amqp.port", 5673, "amqp.port: cannot be changed at run time; change the configuration and restart"),
    ("tls.key", "a", "tls.key: cannot be changed at run time; change the configuration and reload it"),
    ("log.file", "/etc/x", "log.file: cannot be changed at run time; change the configuration and reload it"),
    ("log.level", "loud", 'log.level: must be "debug" or "info" or "warning" or "error", not \'loud\''),
    ("log.levle", "info", "log.levle: no such setting; did you mean log.level?"),
    ("none.at.all", 1, "none.at.all: no such setting"),
    ("mqtt.prefetch", True, "mqtt.prefetch: must be a whole number from 1 to 65535, not True"),
]


@pytest.mark.parametrize(("key", "value", "reason"), REFUSED, ids=[key for key, *_ in REFUSED])
def test_a_refused_change_names_the_setting_and_changes_nothing(
    node: Node, key: str, value: object, reason: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        node.settings.change(key, value)
    assert str(refused.value).startswith(reason)
    assert node.applied == []


def test_an_invalid_file_changes_nothing(node: Node) -> None:
    node.file.write_text("memory_high_watermark = 7.5")
    with pytest.raises(ConfigurationError, match="memory_high_watermark: must be"):
        node.settings.reload()
    assert node.applied == []


def test_the_log_is_opened_again_with_its_new_level(node: Node) -> None:
    opened: list[bool] = []
    node.settings.on_log_changed = lambda: opened.append(True)
    node.settings.change("memory_high_watermark", 0.5)
    node.settings.change("log.level", "debug")
    assert opened == [True]
