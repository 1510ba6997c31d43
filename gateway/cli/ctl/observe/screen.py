"""The screen: a head with the state and the rates of the broker, and a table of queues, connections or turns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.cli.ctl.erlang import cell
from gateway.cli.ctl.observe.snapshot import CONNECTION_ORDERS, QUEUE_ORDERS, RATES, BrokerSnapshot, ShownList, rate
from gateway.cli.ctl.values import Json, JsonObject, number, part, text

VIEWS: Final = ("queues", "connections", "turns")

#: Lines above and below the rows of the table.
_HEAD_LINES: Final = 9
_FOOT_LINES: Final = 1

_BARS: Final = "▁▂▃▄▅▆▇█"

KEYS: Final = "q quit  tab view  s order  ↑↓ scroll  space pause  +/- interval  ? help"

HELP: Final = """\
tab, 1 2 3    queues, connections, turns
s             another order of the list: the column in bold
up, down      scroll by a line; page up, page down by a page
home          back to the top
space         pause, and continue
+ -           poll more often, or less
q, ctrl-c     quit
?             leave this help"""


@dataclass(slots=True)
class ScreenState:
    """The choices made by keys, and the rates so far."""

    question: ShownList = field(default_factory=ShownList)
    interval_s: float = 2.0
    offset: int = 0
    is_paused: bool = False
    has_help: bool = False
    published: list[float] = field(default_factory=list)
    delivered: list[float] = field(default_factory=list)

    def remember(self, snapshot: BrokerSnapshot, most: int = 120) -> None:
        """Keep the rates of a snapshot for the curves."""
        for rates, name in ((self.published, "publish"), (self.delivered, "deliver_get")):
            rates.append(snapshot.rate(name))
            del rates[:-most]


def draw(snapshot: BrokerSnapshot, state: ScreenState, width: int, height: int) -> RenderableType:
    """Return the screen for a terminal of this size."""
    if state.has_help:
        return Group(_title(snapshot, state), Text(""), Text(HELP), Text(""))
    room = max(1, height - _HEAD_LINES - _FOOT_LINES)
    if snapshot.overview is None:
        body: list[RenderableType] = [Text(snapshot.error or "waiting for the broker ...", style="bold red")]
    else:
        body = [_numbers(snapshot, state, width), _list(snapshot, state, room)]
    return Group(_title(snapshot, state), *body, Text(KEYS, style="dim", no_wrap=True, overflow="ellipsis"))


# The head


def _title(snapshot: BrokerSnapshot, state: ScreenState) -> Text:
    name = text(snapshot.overview, "node") or "observe"
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(f" {name} ", "reverse bold")
    if snapshot.error:
        line.append(f" {snapshot.error}", "bold red")
    else:
        uptime = timedelta(seconds=number(snapshot.node, "uptime") // 1000)
        line.append(f" {text(snapshot.overview, 'product_version')}  up {uptime}  every {state.interval_s:g} s")
    if state.is_paused:
        line.append("  PAUSED", "bold yellow")
    if part(snapshot.node, "being_drained") is True:
        line.append("  MAINTENANCE", "bold yellow")
    for alarm in snapshot.alarms:
        line.append(f"  ALARM {alarm}", "bold red")
    return line


def _numbers(snapshot: BrokerSnapshot, state: ScreenState, width: int) -> Table:
    """Return the rates, totals and resources side by side."""
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in range(3):
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    rates = [f"{label:<13}{snapshot.rate(name):>9,.0f}/s" for label, name in RATES]
    curve = max(8, width // 3 - 5)
    totals, node, turns = snapshot.overview, snapshot.node, part(snapshot.node, "turns")
    middle = [
        _named("ready", number(totals, "queue_totals", "messages_ready")),
        _named("unacked", number(totals, "queue_totals", "messages_unacknowledged")),
        _named("queues", number(totals, "object_totals", "queues")),
        _named("connections", number(totals, "object_totals", "connections")),
        _named("channels", number(totals, "object_totals", "channels")),
        _named("consumers", number(totals, "object_totals", "consumers")),
    ]
    right = [
        f"memory {_size(number(node, 'mem_used'))} of {_size(number(node, 'mem_limit'))}",
        f"disk   {_size(number(node, 'disk_free'))} free",
        f"files  {number(node, 'fd_used')} of {number(node, 'fd_total')}",
        f"turns  {_ms(turns, 'p99_recent_ms')} p99, {_ms(turns, 'longest_recent_ms')} max",
        f"in  {_curve(state.published, curve)}",
        f"out {_curve(state.delivered, curve)}",
    ]
    for row in zip(rates, middle, right, strict=True):
        grid.add_row(*map(Text, row))
    return grid


def _named(name: str, value: int) -> str:
    return f"{name:<12}{value:>11,}"


def _curve(rates: Sequence[float], width: int) -> str:
    """Draw the latest rates as bars, relative to the highest."""
    shown = rates[-width:]
    highest = max(shown, default=0) or 1
    return "".join(_BARS[min(7, int(8 * each / highest))] for each in shown)


# The list


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its cell, and the name of its order, if the list can be ordered by it."""

    title: str
    cell: Callable[[JsonObject], str]
    order: str = ""
    is_number: bool = True


_QUEUES: Final = (
    Column("vhost", lambda row: _safe(row, "vhost"), is_number=False),
    Column("queue", lambda row: _safe(row, "name"), "name", is_number=False),
    Column("type", lambda row: text(row, "type"), is_number=False),
    Column("depth", lambda row: f"{number(row, 'messages'):,}", "depth"),
    Column("ready", lambda row: f"{number(row, 'messages_ready'):,}", "ready"),
    Column("unacked", lambda row: f"{number(row, 'messages_unacknowledged'):,}", "unacked"),
    Column("in/s", lambda row: f"{rate(row, 'message_stats', 'publish_details'):,.0f}", "in"),
    Column("out/s", lambda row: f"{rate(row, 'message_stats', 'deliver_get_details'):,.0f}", "out"),
    Column("cons", lambda row: f"{number(row, 'consumers'):,}"),
)
_CONNECTIONS: Final = (
    Column("connection", lambda row: _safe(row, "name"), "name", is_number=False),
    Column("user", lambda row: _safe(row, "user"), is_number=False),
    Column("protocol", lambda row: text(row, "protocol"), is_number=False),
    Column("state", lambda row: text(row, "state"), is_number=False),
    Column("ch", lambda row: f"{number(row, 'channels'):,}", "channels"),
    Column("in B/s", lambda row: _size(rate(row, "recv_oct_details")), "received"),
    Column("out B/s", lambda row: _size(rate(row, "send_oct_details")), "sent"),
)


def _list(snapshot: BrokerSnapshot, state: ScreenState, room: int) -> RenderableType:
    if snapshot.question.view == "turns":
        return _turns(snapshot)
    columns = _QUEUES if snapshot.question.view == "queues" else _CONNECTIONS
    state.offset = max(0, min(state.offset, len(snapshot.rows) - room))
    table = Table(expand=True, box=None, padding=(0, 1, 0, 0), header_style="underline")
    for column in columns:
        style = "bold underline" if column.order == snapshot.question.order else "underline"
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            header_style=style,
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if column.order == "name" else None,
            max_width=None if column.order == "name" or column.is_number else 14,
        )
    for row in snapshot.rows[state.offset : state.offset + room]:
        table.add_row(*(Text(column.cell(row)) for column in columns))
    shown = min(room, len(snapshot.rows))
    until = state.offset + shown
    scope = f"{snapshot.question.view} {state.offset + 1 if shown else 0} to {until} of {snapshot.count:,}"
    return Group(Text(scope, style="bold"), table)


def _turns(snapshot: BrokerSnapshot) -> RenderableType:
    turns = part(snapshot.node, "turns")
    lines = (
        [f"{name:<24}{value}" for name, value in turns.items()] if isinstance(turns, dict) else ["no turns measured"]
    )
    faults = part(snapshot.node, "contained_faults")
    counts = faults.items() if isinstance(faults, dict) else ()
    lines += [f"contained fault: {name:<24}{value}" for name, value in counts]
    return Group(Text("turns of the event loop", style="bold"), *(Text(cell(line)) for line in lines))


def next_question(question: ShownList, view: str | None = None) -> ShownList:
    """Return the question with another view, or with the next order of the same view."""
    if view is not None:
        return ShownList(view, {"queues": "depth", "connections": "received"}.get(view, ""))
    orders = list({"queues": QUEUE_ORDERS, "connections": CONNECTION_ORDERS}.get(question.view, {"": ""}))
    return ShownList(question.view, orders[(orders.index(question.order) + 1) % len(orders)])


def _safe(row: Json, name: str) -> str:
    """Return a name without control characters, which could send commands to the terminal."""
    return cell(text(row, name))


def _ms(turns: Json, name: str) -> str:
    """Write the duration of turns in milliseconds."""
    found = part(turns, name)
    return f"{found:.0f} ms" if isinstance(found, int | float) else "-"


def _size(value: float) -> str:
    """Write bytes in at most six characters: ``1.5 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
