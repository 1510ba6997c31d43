"""A plugin that uses every hook, and counts how its objects are used."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache

from gateway.api import (
    AccessWrapper,
    Answer,
    Arguments,
    AuthenticationMethod,
    Authenticator,
    Authorizer,
    Binding,
    Credentials,
    CtlVerb,
    DeathReason,
    Decision,
    Destination,
    Dialogue,
    Event,
    EventListener,
    ExchangeTypes,
    Failure,
    FeatureQueue,
    HttpRequest,
    HttpResource,
    Interceptor,
    Message,
    MetricSource,
    ObservedVhost,
    Origin,
    Permissions,
    PluginMetric,
    PluginSettings,
    Principal,
    QueueFeature,
    QueueFeatureType,
    QueueSetting,
    Rejection,
    Success,
    TracedVhost,
    Tracer,
    UiPanel,
    Value,
    VerbArgument,
    Visitor,
    hookimpl,
)


class Settings(PluginSettings):
    """The settings of the plugin."""

    password: str
    """Password of the users of the plugin."""


@cache
def counts_of(vhost: str) -> Counter[str]:
    """Return how often the objects of a virtual host were used, by object."""
    return Counter()


class Everywhere:
    """An exchange type that routes to all bound queues."""

    def __init__(self, arguments: Arguments) -> None:
        self._destination_by_binding: dict[Binding, Destination] = {}

    def bind(self, binding: Binding) -> None:
        self._destination_by_binding[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        del self._destination_by_binding[binding]

    def route(self, message: Message) -> Iterable[Destination]:
        return list(self._destination_by_binding.values())


class MostBytes(QueueFeature):
    """Rejects messages with more bytes."""

    def __init__(self, queue: FeatureQueue) -> None:
        self._most = int(str(queue.settings["acme-most-bytes"]))

    def on_enqueue(self, message: Message) -> Rejection | None:
        return Rejection(DeathReason.MAXLEN) if len(message.body) > self._most else None


class Users:
    """Accepts every user with the password of the settings; each may do everything."""

    def __init__(self, password: str) -> None:
        self._password = password

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        is_known = credentials.mechanism == "PLAIN" and credentials.password == self._password
        answer(Principal(credentials.username) if is_known else None)

    def permissions(self, principal: Principal, vhost: str) -> Permissions:
        return Permissions(principal.name, vhost, ".*", ".*", ".*")


class Word:
    """An authentication method: the client sends the password in its first message."""

    def __init__(self, password: str, counts: Counter[str]) -> None:
        self._password = password
        self._counts = counts

    def begin(self, visitor: Visitor) -> Dialogue:
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        self._counts["dialogues"] += 1
        is_known = data == self._password.encode()
        answer(Success(Principal("word")) if is_known else Failure("wrong word"))


class CountedLogins:
    """Counts the logins that the authenticator of the plugin is asked for."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def authenticator(self, plugin: str, asked: Authenticator) -> Authenticator:
        counts = self._counts

        class Counted:
            def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
                counts["logins"] += 1
                asked.authenticate(credentials, answer)

        return Counted() if plugin == "acme-kit" else asked

    def authorizer(self, plugin: str, asked: Authorizer) -> Authorizer:
        return asked


class Stamp(Interceptor):
    """Adds the user of the publisher."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message.edited({"acme-user": origin.user})


class Traced:
    """Counts messages while tracing is on."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def published(self, message: Message, queues: Sequence[str], origin: Origin) -> None:
        self._counts["traced publishes"] += 1

    def delivered(self, message: Message, queue: str, redelivered: bool, origin: Origin) -> None:
        self._counts["traced deliveries"] += 1


class CreatedQueues(EventListener):
    """Counts queues."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def on_event(self, event: Event) -> None:
        self._counts["queues"] += event.name == "queue.created"


class Report:
    """The counts as resources."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def rows(self, request: HttpRequest) -> object:
        return [{"name": name, "count": count} for name, count in sorted(self._counts.items())]

    def reset(self, request: HttpRequest) -> None:
        self._counts.pop(request.names["name"], None)


def most_bytes_fault(value: Value) -> str | None:
    """Return what is wrong with the setting of a queue."""
    return None if isinstance(value, int) and value > 0 else "must be a number of bytes above 0"


@hookimpl
def gateway_settings_model() -> type[Settings]:
    return Settings


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    return {"x-acme": Everywhere}


@hookimpl
def gateway_queue_features() -> Sequence[QueueFeatureType]:
    return [QueueFeatureType({"acme-most-bytes": QueueSetting(most_bytes_fault)}, MostBytes)]


@hookimpl
def gateway_authenticators(settings: Settings) -> Sequence[Authenticator]:
    return [Users(settings.password)]


@hookimpl
def gateway_authentication_methods(vhost: str, settings: Settings) -> Mapping[str, AuthenticationMethod]:
    return {"ACME-WORD": Word(settings.password, counts_of(vhost))}


@hookimpl
def gateway_authorizers(settings: Settings) -> Sequence[Authorizer]:
    return [Users(settings.password)]


class Uses(MetricSource):
    """The counts as a metric."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts

    def metrics(self) -> Sequence[PluginMetric]:
        uses = [({"object": name.replace(" ", "_")}, count) for name, count in self._counts.items()]
        return [PluginMetric("uses", "gauge", "Uses of the objects of the plugin", uses)]


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    return [Uses(counts_of(vhost))]


@hookimpl
def gateway_access_wrappers(vhost: str, plugins: Collection[str]) -> Sequence[AccessWrapper]:
    return [CountedLogins(counts_of(vhost))]


@hookimpl
def gateway_interceptors() -> Sequence[Interceptor]:
    return [Stamp()]


@hookimpl
def gateway_tracers(vhost: TracedVhost) -> Sequence[Tracer]:
    return [Traced(counts_of(vhost.name))]


@hookimpl
def gateway_event_listeners(vhost: ObservedVhost) -> Sequence[EventListener]:
    return [CreatedQueues(counts_of(vhost.name))]


@hookimpl
def gateway_http_resources(vhost: TracedVhost) -> Sequence[HttpResource]:
    report = Report(counts_of(vhost.name))
    return [
        HttpResource("report", report.rows),
        HttpResource("report/{name}", report.reset, "DELETE", tag="administrator"),
    ]


@hookimpl
def gateway_ctl_verbs() -> Sequence[CtlVerb]:
    return [
        CtlVerb("report", "report", "Show the counts.", columns=["name", "count"]),
        CtlVerb("reset", "report/{name}", "Reset a count.", "DELETE", [VerbArgument("name")]),
    ]


@hookimpl
def gateway_ui_panels() -> Sequence[UiPanel]:
    return [UiPanel("Acme", "report")]
