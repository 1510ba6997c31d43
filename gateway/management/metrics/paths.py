"""The paths of the metrics listener: RabbitMQ's, and one with the names of rabbitmq_exporter."""

from collections.abc import Collection
from typing import Final

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Endpoint, Routes, Streamed
from gateway.management.metrics.exposition import Exposition, compressed
from gateway.management.metrics.scrapes import (
    DETAILED_GROUPS,
    Pieces,
    detailed_scrape,
    encoded_scrape,
    exporter_scrape,
    node_scrape,
    per_object_scrape,
)
from gateway.management.metrics.sources import MetricSources

#: The most groups and virtual hosts that a query may name.
_MOST_VALUES: Final = 1000


def metric_paths(sources: MetricSources, *, requires_login: bool, per_object: bool) -> tuple[Endpoint, ...]:
    """Return the paths. ``per_object`` answers ``/metrics`` with the metrics of single objects, too."""
    routes = Routes()
    level = AccessLevel.MONITORING if requires_login else AccessLevel.PUBLIC

    @routes.get("/metrics", "/metrics/default", level=level)
    def node(call: Call) -> Streamed:
        """Return the metrics of the node."""
        exposition = _exposition(call)
        if per_object:
            return _streamed(call, exposition, per_object_scrape(sources, exposition))
        return _streamed(call, exposition, encoded_scrape(exposition, node_scrape(sources)))

    @routes.get("/metrics/per-object", level=level)
    def objects(call: Call) -> Streamed:
        """Return the metrics of the node and of every queue, exchange, channel and connection."""
        exposition = _exposition(call)
        return _streamed(call, exposition, per_object_scrape(sources, exposition))

    @routes.get("/metrics/detailed", level=level)
    def detailed(call: Call) -> Streamed:
        """Return the groups of metrics that the query names, of the virtual hosts that it names."""
        exposition, families, vhosts = _exposition(call), _families(call), _vhosts(call)
        return _streamed(call, exposition, detailed_scrape(sources, exposition, families, vhosts))

    @routes.get("/metrics/exporter", level=level)
    def exporter(call: Call) -> Streamed:
        """Return the metrics under the names of rabbitmq_exporter."""
        exposition = _exposition(call)
        return _streamed(call, exposition, exporter_scrape(sources, exposition))

    @routes.get("/metrics/<registry>", level=level)
    def unknown(call: Call, registry: str) -> Streamed:
        """Refuse an unknown path."""
        raise HttpError(404, "not_found", f"unknown registry '{registry}': use per-object, detailed or exporter")

    return tuple(routes)


def _families(call: Call) -> Collection[str]:
    """Return the requested groups. :raises HttpError: for an unknown one."""
    families = _values(call, "family")
    unknown = [name for name in families if name not in DETAILED_GROUPS]
    if unknown:
        raise bad_request(
            f"unknown family '{unknown[0][:100]}': it must be one of {', '.join(sorted(DETAILED_GROUPS))}"
        )
    return families


def _vhosts(call: Call) -> list[VirtualHost]:
    """Return the requested virtual hosts that exist, all without a request, as in RabbitMQ."""
    vhosts, names = call.broker.vhost_by_name, _values(call, "vhost")
    return [vhosts[name] for name in names if name in vhosts] if names else list(vhosts.values())


def _values(call: Call, name: str) -> list[str]:
    values = list(dict.fromkeys(call.values(name)))
    if len(values) > _MOST_VALUES:
        raise bad_request(f"the query has more than {_MOST_VALUES} fields '{name}'")
    return values


def _exposition(call: Call) -> Exposition:
    return Exposition(call.headers.get("accept", ""))


def _streamed(call: Call, exposition: Exposition, pieces: Pieces) -> Streamed:
    """Return a response with these pieces, compressed if the scraper accepts that."""
    whole = _ended(pieces, exposition.end)
    if _accepts_gzip(call.headers.get("accept-encoding", "")):
        return Streamed(compressed(whole), exposition.content_type, {"Content-Encoding": "gzip"})
    return Streamed(whole, exposition.content_type)


def _ended(pieces: Pieces, end: bytes) -> Pieces:
    yield from pieces
    yield end


def _accepts_gzip(header: str) -> bool:
    """Return whether a header ``Accept-Encoding`` allows gzip."""
    for coding in header.split(","):
        name, _, weight = coding.strip().partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
