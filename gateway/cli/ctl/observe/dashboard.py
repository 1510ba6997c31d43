"""The verb ``observe``: polls the broker at intervals, and draws the answers."""

import sys
import threading
from typing import Final

import click
from rich.console import Console
from rich.live import Live

from gateway.cli.ctl.errors import BrokerUnreachable, WrongUsage
from gateway.cli.ctl.observe.keys import Keys
from gateway.cli.ctl.observe.screen import VIEWS, ScreenState, draw, next_question
from gateway.cli.ctl.observe.snapshot import BrokerSnapshot, take_snapshot
from gateway.cli.ctl.session import VerbSession

#: Intervals between two looks, in seconds.
INTERVALS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

_REDRAW_S: Final = 0.2
_WIDTH, _HEIGHT = 80, 24


class Dashboard:
    """Owns the state of the screen. The broker is asked in a thread, so that keys act at once."""

    def __init__(self, session: VerbSession, interval_s: float, view: str) -> None:
        self.state = ScreenState(next_question(ScreenState().question, view), interval_s)
        self.snapshot = BrokerSnapshot(question=self.state.question)
        self._api = session.api
        self._is_due = threading.Event()
        self._has_ended = threading.Event()

    def run(self, console: Console) -> None:
        """Show the screen until the user quits."""
        threading.Thread(target=self._look, daemon=True).start()
        try:
            with Keys() as keys, Live(console=console, screen=True, auto_refresh=False) as live:
                while True:
                    live.update(draw(self.snapshot, self.state, console.width, console.height), refresh=True)
                    if not self.press(keys.wait(_REDRAW_S), console.height):
                        return
        finally:
            self._has_ended.set()
            self._is_due.set()

    def look_once(self) -> BrokerSnapshot:
        """Ask the broker, and keep the answer."""
        found = take_snapshot(self._api, self.state.question)
        if found.error and self.snapshot.overview is not None:
            known = self.snapshot
            found = BrokerSnapshot(
                known.overview, known.node, known.rows, known.count, known.alarms, found.error, known.question
            )
        self.snapshot = found
        self.state.remember(found)
        return found

    def press(self, key: str, height: int) -> bool:
        """Act on a key; return whether to go on."""
        state = self.state
        page = max(1, height - 10)
        moves = {"up": -1, "down": 1, "page up": -page, "page down": page, "k": -1, "j": 1}
        if key in ("q", "Q"):
            return False
        if key in ("?", "h"):
            state.has_help = not state.has_help
        elif key == " ":
            state.is_paused = not state.is_paused
        elif key in moves:
            state.offset = max(0, state.offset + moves[key])
        elif key == "home":
            state.offset = 0
        elif key in ("+", "="):
            self._change_interval(-1)
        elif key == "-":
            self._change_interval(1)
        elif key == "tab":
            self._ask(VIEWS[(VIEWS.index(state.question.view) + 1) % len(VIEWS)])
        elif key in ("1", "2", "3"):
            self._ask(VIEWS[int(key) - 1])
        elif key == "s":
            self._ask(None)
        return True

    def _ask(self, view: str | None) -> None:
        """Poll at once, with another view or another order."""
        self.state.question = next_question(self.state.question, view)
        self.state.offset = 0
        self._is_due.set()

    def _change_interval(self, step: int) -> None:
        nearest = min(range(len(INTERVALS)), key=lambda index: abs(INTERVALS[index] - self.state.interval_s))
        self.state.interval_s = INTERVALS[max(0, min(nearest + step, len(INTERVALS) - 1))]
        self._is_due.set()

    def _look(self) -> None:
        while not self._has_ended.is_set():
            self._is_due.clear()
            if not self.state.is_paused or self.snapshot.question != self.state.question:
                self.look_once()
            self._is_due.wait(self.state.interval_s)


def observe_broker(session: VerbSession, interval_s: float, view: str, once: bool) -> None:
    """Show the dashboard, or one screen of it.

    :raises WrongUsage: if there is no terminal.
    :raises BrokerUnreachable: if the only poll fails.
    """
    dashboard = Dashboard(session, interval_s, view)
    if once:
        if dashboard.look_once().error:
            raise BrokerUnreachable(dashboard.snapshot.error)
        console = Console(width=None if sys.stdout.isatty() else _WIDTH)
        console.print(draw(dashboard.snapshot, dashboard.state, console.width, _HEIGHT))
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise WrongUsage("observe needs a terminal; --once prints one screen")
    session.api.get("whoami")
    try:
        dashboard.run(Console())
    except KeyboardInterrupt:
        click.echo()
