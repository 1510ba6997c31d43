"""The gateway's own metrics: event loop, store, plugins, traces, MQTT sessions, drops, delays, archives, pipeline."""

from collections.abc import Generator, Iterable, Iterator
from typing import Final

from prometheus_client import Metric

from gateway.kernel.counters import Counters
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.metrics.family import Family, Labelled, add_buckets, counter, gauge, histogram
from gateway.management.metrics.sources import MetricSources
from gateway.management.metrics.totals import PROTOCOLS, Totals
from gateway.management.pipeline.progress import lag_view
from gateway.management.super_streams import partitions_of

TURNS: Final = histogram("gateway_turn_seconds", "Durations of the turns of the event loop, in seconds")
LONGEST_TURN: Final = gauge("gateway_turn_longest_seconds", "Longest turn of the last half to one minute, in seconds")
SLOW_TURNS: Final = counter("gateway_turns_slow_total", "Turns of more than 100 ms")
GC_PAUSE: Final = gauge("gateway_gc_longest_pause_seconds", "Longest pause of the garbage collector, in seconds")

COMMITS: Final = histogram("gateway_store_commit_seconds", "Durations of commits of the store, sync included")
WRITTEN: Final = counter("gateway_store_written_bytes_total", "Size of message bodies written to the store, in bytes")
FILE_BYTES: Final = gauge("gateway_store_file_bytes", "Size of the store's file, in bytes")
FREE_BYTES: Final = gauge("gateway_store_free_bytes", "Free space in the store's file, in bytes")
BACKLOG: Final = gauge("gateway_store_backlog_bytes", "Changes that wait for the store, in bytes")

CONNECTIONS: Final = gauge("gateway_connections", "Connections with an open virtual host", "protocol")
FAULTS: Final = counter("gateway_faults_total", "Exceptions that were contained", "kind")
PLUGIN_SECONDS: Final = Family(
    "gateway_plugin_seconds",
    "summary",
    "Measured calls of plugins: their number and the sum of their durations; of interceptors one call in 64",
    ("vhost", "plugin", "hook", "version"),
)
PLUGIN_LONGEST: Final = gauge(
    "gateway_plugin_longest_call_seconds", "Longest call of a plugin", "vhost", "plugin", "hook", "version"
)
PLUGIN_FAULTS: Final = counter("gateway_plugin_faults_total", "Faults of plugins", "vhost", "plugin")
LOGINS: Final = {
    "delayed": counter("gateway_logins_delayed_total", "Logins that were delayed because of failures before them"),
    "refused": counter("gateway_logins_refused_total", "Logins that were refused without a check of the password"),
    "waiting": gauge("gateway_logins_waiting", "Logins that wait because of failures before them"),
    "hashes_unfinished": gauge("gateway_password_hashes_waiting", "Passwords that wait to be hashed"),
    "hashes_refused": counter("gateway_password_hashes_refused_total", "Logins refused because too many wait"),
}

TRACES: Final = gauge("gateway_trace_messages", "Traces of messages in memory", "vhost")
TRACE_BYTES: Final = gauge("gateway_trace_bytes", "Memory of these traces, in bytes", "vhost")
TRACES_EVICTED: Final = counter("gateway_trace_evicted_total", "Traces dropped for later ones", "vhost")
TRACE_SAMPLE: Final = gauge("gateway_trace_sample_ratio", "Share of the messages that are traced", "vhost")

SESSIONS: Final = gauge("gateway_mqtt_sessions", "MQTT sessions", "vhost", "state")
SESSIONS_EXPIRED: Final = counter("gateway_mqtt_sessions_expired_total", "MQTT sessions that expired", "vhost")
SUBSCRIPTIONS: Final = gauge("gateway_mqtt_subscriptions", "Subscriptions of MQTT sessions", "vhost")
SESSION_MESSAGES: Final = gauge(
    "gateway_mqtt_session_messages", "Messages in the queues of MQTT sessions, by state", "vhost", "state"
)
RETAINED: Final = gauge("gateway_mqtt_retained_messages", "Retained messages", "vhost")
RETAINED_BYTES: Final = gauge("gateway_mqtt_retained_bytes", "Size of retained messages, in bytes", "vhost")

DROPPED: Final = counter(
    "gateway_dropped_messages_total",
    "Messages that were dropped; the protocol is that of the publisher, known for the reason unroutable only",
    *("vhost", "reason", "protocol"),
)
QUEUE_MESSAGES: Final = gauge(
    "gateway_queue_messages", "Messages of all queues of a type, by state", "vhost", "queue_type", "state"
)
DELAYED: Final = gauge("gateway_delayed_messages", "Delayed messages in queues", "vhost")
PENDING: Final = gauge("gateway_pending_dead_letters", "Dead letters that no target queue could take yet", "vhost")

ARCHIVES: Final = gauge("gateway_archives", "Archives of exchanges and queues", "vhost")
ARCHIVE_WAITING: Final = gauge("gateway_archive_waiting_bytes", "Sealed segments that wait for export", "vhost")
ARCHIVE_LAG: Final = gauge("gateway_archive_lag_seconds", "Age of the oldest message not exported yet", "vhost")
ARCHIVE_FULL: Final = gauge("gateway_archives_full", "Archives that hold back their publishers", "vhost")

STAGED: Final = gauge("gateway_pipeline_staged_bytes", "Rows of Spark that are not published yet, in bytes")
UNPUBLISHED: Final = gauge(
    "gateway_pipeline_unpublished_rows", "Rows of committed batches of Spark that are not published yet"
)
HELD: Final = gauge("gateway_pipeline_held_batches", "Committed batches of Spark that cannot be published for now")
PIPELINE_LAG: Final = gauge(
    "gateway_pipeline_consumer_lag_messages", "Messages that a pipeline consumer has not read yet", "vhost", "consumer"
)
PIPELINE_AGE: Final = gauge(
    "gateway_pipeline_consumer_report_age_seconds", "Time since its last report", "vhost", "consumer"
)
SHOVELS: Final = gauge("rabbitmq_shovel_dynamic", "Shovels and MQTT bridges by state", "status")
LINKS: Final = gauge("rabbitmq_federation_links", "Federation links by state", "status")

FAMILIES: Final[tuple[Family, ...]] = (
    *(TURNS, LONGEST_TURN, SLOW_TURNS, GC_PAUSE),
    *(COMMITS, WRITTEN, FILE_BYTES, FREE_BYTES, BACKLOG),
    *(CONNECTIONS, FAULTS, PLUGIN_SECONDS, PLUGIN_LONGEST, PLUGIN_FAULTS),
    *LOGINS.values(),
    *(TRACES, TRACE_BYTES, TRACES_EVICTED, TRACE_SAMPLE),
    *(SESSIONS, SESSIONS_EXPIRED, SUBSCRIPTIONS, SESSION_MESSAGES, RETAINED, RETAINED_BYTES),
    *(DROPPED, QUEUE_MESSAGES, DELAYED, PENDING),
    *(ARCHIVES, ARCHIVE_WAITING, ARCHIVE_LAG, ARCHIVE_FULL),
    *(STAGED, UNPUBLISHED, HELD, PIPELINE_LAG, PIPELINE_AGE, SHOVELS, LINKS),
)

#: Sessions between two steps.
_STEP: Final = 32


def process(sources: MetricSources) -> Iterator[Metric]:
    """Yield the turns of the event loop and the garbage collector."""
    bounds, counts = sources.turns.classes()
    turns = TURNS.empty()
    add_buckets(turns, TURNS, (), bounds, counts, sources.turns.total_s)
    yield turns
    yield LONGEST_TURN.single(sources.turns.recent_longest_s)
    yield SLOW_TURNS.single(sources.turns.slow_turns)
    yield GC_PAUSE.single(float(sources.api.collections().get("gc_longest_pause_ms", 0)) / 1000)
    yield FAULTS.metric([((kind,), count) for kind, count in sources.api.broker.faults.count_by_kind.items()])


def store(sources: MetricSources) -> Iterator[Metric]:
    """Yield the store: its commits, its files and what waits for it. A store in memory has a backlog only."""
    yield BACKLOG.single(sources.api.broker.journal.backlog_bytes)
    commits, info = sources.commits(), sources.api.store_info()
    if commits is not None:
        times = COMMITS.empty()
        add_buckets(times, COMMITS, (), commits.bounds_s, tuple(commits.counts), commits.total_s)
        yield times
        yield WRITTEN.single(commits.written_bytes)
    if info:
        yield FILE_BYTES.single(info["file_bytes"])
        yield FREE_BYTES.single(info["free_bytes"])


def logins(sources: MetricSources) -> Iterator[Metric]:
    """Yield the logins that wait for the throttle and for hashing."""
    counts = sources.api.login_counts()
    for name, family in LOGINS.items():
        yield family.single(counts.get(name, 0))


def plugins(sources: MetricSources) -> Iterator[Metric]:
    """Yield the times and the faults of plugins by virtual host."""
    seconds, longest = PLUGIN_SECONDS.empty(), PLUGIN_LONGEST.empty()
    sums: dict[tuple[str, ...], list[float]] = {}
    for time in sources.plugin_times():
        key = (time.vhost, time.plugin, time.method, str(time.version))
        known = sums.setdefault(key, [0, 0.0, 0.0])
        known[0] += time.calls
        known[1] += time.total_s
        known[2] = max(known[2], time.longest_s)
    for values, (calls, total_s, longest_s) in sums.items():
        labels = dict(zip(PLUGIN_SECONDS.labels, values, strict=True))
        seconds.add_sample(f"{PLUGIN_SECONDS.name}_count", labels, calls)
        seconds.add_sample(f"{PLUGIN_SECONDS.name}_sum", labels, total_s)
        longest.add_sample(PLUGIN_LONGEST.name, labels, longest_s)
    yield seconds
    yield longest
    yield PLUGIN_FAULTS.metric(sources.plugin_faults().items())


def bridges(sources: MetricSources) -> Iterator[Metric]:
    """Yield the shovels and federation links by state."""
    yield _by_status(SHOVELS, [str(row.get("state")) for row in sources.api.bridges.shovel_statuses()])
    yield _by_status(LINKS, [str(row.get("status")) for row in sources.api.bridges.federation_statuses()])


def _by_status(family: Family, statuses: list[str]) -> Metric:
    return family.metric([((status,), statuses.count(status)) for status in sorted({*statuses, "running"})])


def messages(sources: MetricSources, totals: Totals) -> Iterator[Metric]:
    """Yield messages by state, what was dropped and why, and connections by protocol."""
    yield CONNECTIONS.metric([((name,), totals.connections[name]) for name in PROTOCOLS.values() if name != "http"])
    yield QUEUE_MESSAGES.metric(
        [
            ((*key, state), count)
            for key, sums in totals.by_vhost.items()
            for state, count in (("ready", sums.ready), ("unacked", sums.unacked), ("delayed", sums.delayed))
        ]
    )
    vhosts = list(sources.api.broker.vhost_by_name.values())
    yield DROPPED.metric(row for vhost in vhosts for row in _drops(vhost, totals))
    delayed, pending = dict.fromkeys([vhost.name for vhost in vhosts], 0), {vhost.name: 0 for vhost in vhosts}
    for (name, _), sums in totals.by_vhost.items():
        delayed[name] = delayed.get(name, 0) + sums.delayed
        pending[name] = pending.get(name, 0) + sums.pending_dead_letters
    yield DELAYED.metric([((name,), count) for name, count in delayed.items()])
    yield PENDING.metric([((name,), count) for name, count in pending.items()])


def _drops(vhost: VirtualHost, totals: Totals) -> Iterator[Labelled]:
    sums = Counters().drops()
    for (name, _), counters in totals.counted.items():
        if name == vhost.name:
            for reason, count in counters.drops().items():
                sums[reason] += count
    for reason, count in sums.items():
        yield (vhost.name, reason, ""), count
    for protocol, traffic in vhost.traffic.by_protocol.items():
        label = PROTOCOLS.get(protocol, protocol)
        yield (vhost.name, "unroutable", label), max(0, traffic.unroutable - traffic.returned)


def traces(sources: MetricSources) -> Iterator[Metric]:
    """Yield the traces of messages in memory."""
    kept = [(vhost.name, vhost.message_traces) for vhost in sources.api.broker.vhost_by_name.values()]
    yield TRACES.metric([((name,), len(each)) for name, each in kept])
    yield TRACE_BYTES.metric([((name,), each.bytes) for name, each in kept])
    yield TRACES_EVICTED.metric([((name,), each.evicted) for name, each in kept])
    yield TRACE_SAMPLE.metric([((name,), each.sample) for name, each in kept])


def sessions(sources: MetricSources) -> Generator[Metric | None, None, None]:
    """Yield the MQTT sessions and retained messages; ``None`` after each step of counting sessions."""
    vhosts = list(sources.api.broker.vhost_by_name.values())
    subscriptions: list[Labelled] = []
    waiting: list[Labelled] = []
    for vhost in vhosts:
        subscribed = ready = unacked = 0
        for number, session in enumerate(vhost.sessions.subscribers()):
            subscribed += session.subscription_count
            for queue in session.own_queues():
                ready += len(queue)
                unacked += queue.unsettled
            if number % _STEP == 0:
                yield None
        subscriptions.append(((vhost.name,), subscribed))
        waiting += [((vhost.name, "ready"), ready), ((vhost.name, "unacked"), unacked)]
    connected = {vhost.name: vhost.sessions.connected for vhost in vhosts}
    yield SESSIONS.metric(
        [
            ((vhost.name, state), count)
            for vhost in vhosts
            for state, count in (
                ("connected", connected[vhost.name]),
                ("disconnected", len(vhost.sessions) - connected[vhost.name]),
            )
        ]
    )
    yield SESSIONS_EXPIRED.metric([((vhost.name,), vhost.sessions.expired) for vhost in vhosts])
    yield SUBSCRIPTIONS.metric(subscriptions)
    yield SESSION_MESSAGES.metric(waiting)
    yield RETAINED.metric([((vhost.name,), vhost.retained.count) for vhost in vhosts])
    yield RETAINED_BYTES.metric([((vhost.name,), vhost.retained.bytes) for vhost in vhosts])


def archives(sources: MetricSources) -> Iterator[Metric]:
    """Yield the archives of each virtual host."""
    by_vhost = {vhost.name: list(vhost.archives) for vhost in sources.api.broker.vhost_by_name.values()}
    yield ARCHIVES.metric([((name,), len(found)) for name, found in by_vhost.items()])
    yield ARCHIVE_WAITING.metric([((n,), sum(each.waiting_bytes for each in found)) for n, found in by_vhost.items()])
    yield ARCHIVE_LAG.metric(
        [((name,), max((each.lag_ms for each in found), default=0) / 1000) for name, found in by_vhost.items()]
    )
    yield ARCHIVE_FULL.metric([((name,), sum(each.is_full for each in found)) for name, found in by_vhost.items()])


def pipeline(sources: MetricSources) -> Iterator[Metric]:
    """Yield the rows that Spark staged, and the progress that its consumers reported."""
    yield STAGED.single(sources.staged_bytes())
    yield UNPUBLISHED.single(sources.api.pipeline.runs.rows_left)
    yield HELD.single(sources.api.pipeline.runs.held)
    rows = list(_pipeline_consumers(sources))
    yield PIPELINE_LAG.metric([(labels, lag) for labels, lag, _ in rows])
    yield PIPELINE_AGE.metric([(labels, age_s) for labels, _, age_s in rows])


def _pipeline_consumers(sources: MetricSources) -> "Iterable[tuple[tuple[str, str], float, float]]":
    context = sources.api
    for vhost in context.broker.vhost_by_name.values():
        for consumer, report in context.pipeline.progress.of(vhost.name):
            lags = [
                lag_view(vhost, queue, number, _stream_name(vhost, queue, int(number)), offset)["lag"] or 0
                for queue, offsets in report.offsets.items()
                for number, offset in offsets.items()
            ]
            age_s = max(0, context.broker.clock.wall_ms() - report.reported_at_ms) / 1000
            yield (vhost.name, consumer), float(sum(lags)), age_s


def _stream_name(vhost: VirtualHost, queue: str, partition: int) -> str:
    """Return the name of the stream that is a partition of a super stream, or the stream itself."""
    exchange = vhost.exchange_by_name.get(queue)
    parts = [] if exchange is None or queue in vhost.queue_by_name else partitions_of(vhost, exchange)
    return parts[partition].name if partition < len(parts) else queue
