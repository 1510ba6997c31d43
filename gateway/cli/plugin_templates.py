"""The modules and tests of new plugins for queues, events and the HTTP API."""

from string import Template
from typing import Final

FEATURE: Final = (
    Template('''\
"""$name: the queue argument "x-$name-most-bytes", which rejects larger messages."""

from collections.abc import Sequence

from gateway.api import DeathReason, FeatureQueue, Message, QueueFeature, QueueFeatureType, QueueSetting
from gateway.api import Rejection, Value, hookimpl

SETTING = "$name-most-bytes"


class MostBytes(QueueFeature):
    """Rejects messages with more bytes than the setting of their queue."""

    def __init__(self, queue: FeatureQueue) -> None:
        self._most = int(str(queue.settings[SETTING]))

    def on_enqueue(self, message: Message) -> Rejection | None:
        """Return a rejection for a larger message."""
        return Rejection(DeathReason.MAXLEN) if len(message.body) > self._most else None


def fault(value: Value) -> str | None:
    """Return what is wrong with a value of the setting."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return None if is_number and value > 0 else "must be a number of bytes above 0"


FEATURE = QueueFeatureType({SETTING: QueueSetting(fault)}, MostBytes)


@hookimpl
def gateway_queue_features() -> Sequence[QueueFeatureType]:
    """Offer the feature."""
    return [FEATURE]
'''),
    Template('''\
"""The queue feature keeps its contract."""

from $module import FEATURE, SETTING

from gateway.testing import check_queue_feature


def test_the_queue_feature_keeps_its_contract():
    check_queue_feature(FEATURE, {SETTING: 1000})
'''),
)

EVENTS: Final = (
    Template('''\
"""$name: counts the events of a virtual host and of its node by name."""

from collections import Counter
from collections.abc import Sequence

from gateway.api import Event, EventListener, ObservedVhost, hookimpl


class EventCounts(EventListener):
    """Counts events by name."""

    def __init__(self, vhost: ObservedVhost) -> None:
        self.counts: Counter[str] = Counter()

    def on_event(self, event: Event) -> None:
        """Count an event."""
        self.counts[event.name] += 1


@hookimpl
def gateway_event_listeners(vhost: ObservedVhost) -> Sequence[EventListener]:
    """Offer the listener."""
    return [EventCounts(vhost)]
'''),
    Template('''\
"""The event listener keeps its contract."""

from $module import EventCounts

from gateway.testing import check_event_listener


def test_the_event_listener_keeps_its_contract():
    check_event_listener(EventCounts)
'''),
)

HTTP: Final = (
    Template('''\
"""$name: notes of the operators, as a resource of the HTTP API, verbs of gatewayctl and a panel of the web UI."""

from collections.abc import Sequence

from gateway.api import CtlVerb, HttpRequest, HttpResource, PreconditionFailed, TracedVhost, UiPanel, VerbArgument
from gateway.api import hookimpl


class Notes:
    """The notes of one virtual host, by title, until the plugin is reloaded."""

    def __init__(self) -> None:
        self._text_by_title: dict[str, str] = {}

    def list(self, request: HttpRequest) -> object:
        """Return the notes as rows."""
        return [{"title": title, "text": text} for title, text in sorted(self._text_by_title.items())]

    def put(self, request: HttpRequest) -> None:
        """Write a note."""
        text = request.fields.get("text")
        if not isinstance(text, str):
            raise PreconditionFailed("the field 'text' must be a text")
        self._text_by_title[request.names["title"]] = text


@hookimpl
def gateway_http_resources(vhost: TracedVhost) -> Sequence[HttpResource]:
    """Offer the resources, below /api/plugins/VHOST/$name/resources/."""
    notes = Notes()
    return [
        HttpResource("notes", notes.list, description="The notes."),
        HttpResource("notes/{title}", notes.put, "PUT", tag="administrator"),
    ]


@hookimpl
def gateway_ctl_verbs() -> Sequence[CtlVerb]:
    """Offer the verbs: gatewayctl $name notes."""
    arguments = [VerbArgument("title", "The title."), VerbArgument("text", "The text.")]
    return [
        CtlVerb("notes", "notes", "List the notes.", columns=["title", "text"]),
        CtlVerb("note", "notes/{title}", "Write a note.", "PUT", arguments),
    ]


@hookimpl
def gateway_ui_panels() -> Sequence[UiPanel]:
    """Offer the panel."""
    return [UiPanel("Notes", "notes")]
'''),
    Template('''\
"""Resources, verbs and panels keep their contracts."""

from $module import gateway_ctl_verbs, gateway_http_resources, gateway_ui_panels

from gateway.testing import StandInVhost, check_ctl_verb, check_http_resource, check_ui_panel, sample_request


def test_resources_verbs_and_panels_keep_their_contracts():
    resources = gateway_http_resources(StandInVhost())
    check_http_resource(resources[0], [sample_request()])
    check_http_resource(resources[1], [sample_request("PUT", {"title": "a"}, body=b'{"text": "b"}')])
    for verb in gateway_ctl_verbs():
        check_ctl_verb(verb, resources)
    for panel in gateway_ui_panels():
        check_ui_panel(panel, resources)
'''),
)
