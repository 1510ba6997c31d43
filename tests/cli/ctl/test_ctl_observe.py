"""The live view: its screens, its keys, and the whole of it in a pseudo-terminal of 80 columns and 24 lines."""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pyte  # type: ignore[import-untyped]
import pytest
from rich.cells import cell_len
from rich.console import Console

from gateway.cli.ctl.observe.dashboard import Dashboard
from gateway.cli.ctl.observe.keys import first_key
from gateway.cli.ctl.observe.screen import ScreenState, draw, next_question
from gateway.cli.ctl.observe.snapshot import BrokerSnapshot, ShownList
from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl
from tests.waiting import wait_until

OVERVIEW = {
    "node": "gateway@here",
    "product_version": "0.1.0",
    "listeners": [],
    "object_totals": {"queues": 50_000, "connections": 12, "channels": 30, "consumers": 7},
    "queue_totals": {"messages_ready": 1_234_567, "messages_unacknowledged": 89},
    "message_stats": {"publish_details": {"rate": 1500.4}, "deliver_get_details": {"rate": 1499.0}},
}
NODE = {
    "name": "gateway@here",
    "uptime": 3_723_000,
    "mem_used": 120_000_000,
    "mem_limit": 4_000_000_000,
    "disk_free": 81_000_000_000,
    "fd_used": 40,
    "fd_total": 20_000,
    "turns": {"p99_recent_ms": 2.2, "longest_recent_ms": 9.9, "longest_cause": "listener"},
}


def queue(number: int, name: str = "") -> dict[str, Any]:
    return {
        "vhost": "/",
        "name": name or f"orders-{number:03d}",
        "type": "classic",
        "messages": 1000 - number,
        "messages_ready": 900 - number,
        "messages_unacknowledged": 100,
        "consumers": 2,
        "message_stats": {"publish_details": {"rate": 10.5}},
    }


def snapshot(*rows: dict[str, Any], view: str = "queues", **changes: Any) -> BrokerSnapshot:
    question = next_question(ShownList(), view)
    fields: dict[str, Any] = {"overview": OVERVIEW, "node": NODE, "rows": rows, "count": len(rows)} | changes
    return BrokerSnapshot(**fields, question=question)


def lines_of(shown: BrokerSnapshot, state: ScreenState | None = None, width: int = 80, height: int = 24) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
    console.print(draw(shown, state or ScreenState(shown.question), width, height))
    written = console.file.getvalue()  # type: ignore[attr-defined]  # the file is a StringIO
    return [line.rstrip() for line in written.splitlines()]


# Screens


@pytest.mark.parametrize(("width", "height"), [(80, 24), (132, 50), (40, 12)])
def test_a_screen_fits_into_the_terminal(width: int, height: int) -> None:
    shown = snapshot(*(queue(number, "name " * 30 + str(number)) for number in range(200)), alarms=("memory alarm",))
    lines = lines_of(shown, width=width, height=height)
    assert len(lines) == height
    assert max(map(cell_len, lines)) <= width


def test_the_head_shows_rates_totals_resources_and_alarms() -> None:
    written = "\n".join(lines_of(snapshot(alarms=("memory alarm on node gateway@here",))))
    for part in ("gateway@here", "up 1:02:03", "1,500/s", "1,234,567", "50,000", "120 MB of 4.0 GB", "81 GB free"):
        assert part in written
    assert "ALARM memory alarm" in written
    assert "2 ms p99, 10 ms max" in written


def test_the_queues_are_listed_with_their_depth() -> None:
    lines = lines_of(snapshot(queue(0), queue(1), count=70))
    assert "queues 1 to 2 of 70" in lines
    assert any(line.startswith("/") and "orders-000" in line and "1,000" in line for line in lines)


def test_a_name_cannot_send_commands_to_the_terminal() -> None:
    written = "\n".join(lines_of(snapshot(queue(0, "\x1b[2J\x07[red]bell\u009b1m"))))
    assert not any((ord(letter) < 32 and letter != "\n") or ord(letter) in range(0x7F, 0xA0) for letter in written)
    assert "[red]bell" in written


def test_connections_and_turns_are_listed_too() -> None:
    row = {"name": "a -> b", "user": "ann", "protocol": "MQTT 5-0", "state": "running", "channels": 1}
    written = "\n".join(lines_of(snapshot(row | {"recv_oct_details": {"rate": 2048.0}}, view="connections")))
    assert "a -> b" in written
    assert "2.0 kB" in written
    assert "longest_cause           listener" in "\n".join(lines_of(snapshot(view="turns")))


def test_a_broker_in_maintenance_and_a_lost_one_are_shown() -> None:
    assert "MAINTENANCE" in lines_of(snapshot(node=NODE | {"being_drained": True}))[0]
    assert "no answer" in lines_of(snapshot(error="no answer"))[0]
    assert "no answer" in "\n".join(lines_of(BrokerSnapshot(error="no answer")))


# Keys


@pytest.fixture
def dashboard() -> Dashboard:
    session: Any = type("Session", (), {"api": None})()
    return Dashboard(session, 2.0, "queues")


def test_keys_choose_the_view_the_order_and_the_interval(dashboard: Dashboard) -> None:
    for key in ("tab", "s", "-", " "):
        assert dashboard.press(key, 24)
    assert dashboard.state.question == ShownList("connections", "sent")
    assert (dashboard.state.interval_s, dashboard.state.is_paused) == (5.0, True)
    for key in ("3", "s", "tab", "+", "+", "+", " ", "?"):
        assert dashboard.press(key, 24)
    assert dashboard.state.question == ShownList("queues", "depth")
    assert (dashboard.state.interval_s, dashboard.state.is_paused, dashboard.state.has_help) == (0.5, False, True)
    assert not dashboard.press("q", 24)


def test_keys_typed_at_once_are_read_one_by_one() -> None:
    keys, rest = [], b"s\x1b[B\x1b[99~\x1b\tq"
    while rest:
        key, rest = first_key(rest)
        keys.append(key)
    assert keys == ["s", "down", "", "", "tab", "q"]


def test_scrolling_ends_at_the_last_row(dashboard: Dashboard) -> None:
    shown = snapshot(*map(queue, range(30)))
    for _ in range(5):
        dashboard.press("page down", 24)
    lines = lines_of(shown, dashboard.state)
    assert "queues 17 to 30 of 30" in lines
    dashboard.press("home", 24)
    dashboard.press("up", 24)
    assert "queues 1 to 14 of 30" in lines_of(shown, dashboard.state)


# One screen, and the terminal


@pytest.fixture
def broker(api: FakeApi) -> FakeApi:
    api.answer("GET overview", OVERVIEW)
    api.answer("GET nodes/gateway%40here", NODE)
    api.answer("GET whoami", {"name": "guest"})
    api.answer("GET queues", {"items": [queue(0), queue(1)], "filtered_count": 2})
    connection = {"name": "a -> b", "user": "ann", "protocol": "AMQP 0-9-1", "state": "running"}
    api.answer("GET connections", {"items": [connection], "filtered_count": 1})
    return api


def test_one_screen_is_printed_without_a_terminal(ctl: Ctl, broker: FakeApi) -> None:
    result = ctl("observe", "--once")
    assert (result.code, result.err) == (0, "")
    assert "orders-001" in result.out
    assert "sort=messages&sort_reverse=true" in broker.received[-1].target


def test_without_a_terminal_the_reason_is_printed(ctl: Ctl) -> None:
    result = ctl("observe")
    assert (result.code, result.err) == (64, "Error: observe needs a terminal; --once prints one screen\n")


class Terminal:
    """A terminal of 80 columns and 24 lines with ``gatewayctl observe`` in it."""

    def __init__(self, url: str) -> None:
        self.screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._descriptor = pty.fork()
        if not self.pid:
            environment = os.environ | {"TERM": "xterm-256color", "GATEWAYCTL_URL": url, "COLUMNS": "80", "LINES": "24"}
            command = [sys.executable, "-m", "gateway.cli.ctl", "observe", "--interval", "0.3"]
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # background jobs of a shell ignore it
            os.execve(sys.executable, command, environment)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.set_blocking(self._descriptor, False)

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def shows(self, text: str) -> bool:
        """Read what was written, and return whether the screen has the text."""
        try:
            while data := os.read(self._descriptor, 65536):
                self._stream.feed(data)
        except OSError:  # nothing to read now, or the end
            pass
        return any(text in line for line in self.screen.display)

    def wait_for(self, text: str) -> None:
        wait_until(
            lambda: self.shows(text), lambda: f"no {text!r} in:\n" + "\n".join(self.screen.display), timeout_s=30
        )

    def end(self) -> int:
        """Return the exit code."""
        ended: list[int] = []

        def has_ended() -> bool:
            self.shows("")
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            ended.append(os.waitstatus_to_exitcode(status))
            return pid == self.pid

        wait_until(has_ended, "observe does not end", timeout_s=30)
        self.pid = 0
        return ended[-1]

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)


@pytest.fixture
def terminal(broker: FakeApi) -> Iterator[Terminal]:
    terminal = Terminal(broker.url)
    yield terminal
    terminal.close()


def test_the_view_is_live_and_obeys_its_keys(terminal: Terminal, broker: FakeApi) -> None:
    terminal.wait_for("orders-000")
    terminal.wait_for("queues 1 to 2 of 2")
    broker.answer("GET queues", {"items": [queue(7, "invoices")], "filtered_count": 1})
    terminal.wait_for("invoices")
    terminal.type(b"\t")
    terminal.wait_for("a -> b")
    terminal.type(b"?")
    terminal.wait_for("another order of the list")
    terminal.type(b"?")
    terminal.wait_for("connections 1 to 1 of 1")
    terminal.type(b"\x1b[B")
    terminal.type(b"3")
    terminal.wait_for("turns of the event loop")
    broker.answer("GET overview", {"error": "x", "reason": "gone"}, 503)
    terminal.wait_for("gone")
    terminal.type(b"q")
    assert terminal.end() == 0


def test_an_interrupt_ends_the_live_view(terminal: Terminal) -> None:
    terminal.wait_for("orders-000")
    terminal.type(b"\x03")
    assert terminal.end() == 0
