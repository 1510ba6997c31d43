"""Panels that plugins add to the web UI. They are descriptions: the UI executes no code of a plugin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

from gateway.plugins.services.http_resource import HttpResource

PanelKind: TypeAlias = Literal["table", "numbers", "text"]
PanelPage: TypeAlias = Literal["overview", "connections", "channels", "exchanges", "queues", "admin"]

KINDS: Final[tuple[str, ...]] = get_args(PanelKind)
PAGES: Final[tuple[str, ...]] = get_args(PanelPage)

#: The shortest and the longest time between two requests of a panel, in seconds; 0 is only one request.
LEAST_REFRESH_S: Final = 1.0
MOST_REFRESH_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class PanelColumn:
    """A column of a table: the ``name`` of a row's field, the ``title`` of the column, and the ``unit`` of numbers."""

    name: str
    title: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class UiPanel:
    """A panel of the web UI, which shows what a GET resource of the same plugin returns.

    ``path`` is that of the resource and has no variables; ``query`` is sent with each request. By ``kind``, the
    resource returns:

    * ``table``: a list of objects; ``columns`` are shown, by default all of the first row;
    * ``numbers``: an object of numbers by their names;
    * ``text``: a text, which is shown as it is.

    ``page`` is where it appears. The UI asks again after ``refresh_s`` seconds, never if it is 0.
    """

    title: str
    path: str
    kind: PanelKind = "table"
    page: PanelPage = "overview"
    columns: Sequence[PanelColumn] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    refresh_s: float = 5.0
    description: str = ""


def problem_of_panel(panel: UiPanel, resources: Sequence[HttpResource]) -> str | None:
    """Return the fault in a panel that a plugin offers, or ``None``."""
    where = f"the panel {panel.title!r}"
    resource = next((each for each in resources if (each.method, each.path) == ("GET", panel.path)), None)
    refresh_s = panel.refresh_s
    if resource is None:
        return f"{where} shows {panel.path!r}, which is no GET resource of the plugin"
    problems = {
        "a panel needs a title": not panel.title,
        f"{where} shows a resource with variables: {panel.path!r}": bool(resource.variables),
        f"{where} has the kind {panel.kind!r}, which is not one of {', '.join(KINDS)}": panel.kind not in KINDS,
        f"{where} is for the page {panel.page!r}, which is not one of {', '.join(PAGES)}": panel.page not in PAGES,
        f"{where} has columns, but is no table": bool(panel.columns) and panel.kind != "table",
        f"{where} has a column that is no PanelColumn": not all(
            isinstance(column, PanelColumn) and column.name for column in panel.columns
        ),
        f"{where} refreshes after {refresh_s} s, not 0, or {LEAST_REFRESH_S:g} to {MOST_REFRESH_S:g}": not (
            refresh_s == 0 or LEAST_REFRESH_S <= refresh_s <= MOST_REFRESH_S
        ),
    }
    return next((text for text, is_wrong in problems.items() if is_wrong), None)
