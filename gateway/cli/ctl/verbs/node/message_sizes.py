"""The verb for the sizes of messages, from the metrics of the broker."""

import re
from collections import Counter
from collections.abc import Iterable
from ipaddress import ip_address
from itertools import pairwise
from typing import Final

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.listeners import Listener, listeners_of
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject
from gateway.cli.ctl.verb import verb

_SCHEMES: Final = {"https/prometheus": "https", "http/prometheus": "http"}
_BUCKET: Final = re.compile(r'^rabbitmq_message_size_bytes_bucket\{.*le="([^"]+)".*\} (\S+)', re.MULTILINE)
_COLUMNS: Final = ("Message Size", "Count", "Percentage")


@verb
def message_size_stats(session: VerbSession) -> None:
    """Show how many messages were published in each range of sizes since the start."""
    overview = session.api.get("overview")
    session.output.announce(f"Gathering message size statistics using {session.api.address.url} ...")
    address = metrics_address(session.api.address, listeners_of(overview))
    session.output.rows(_COLUMNS, size_rows(session.api.text_at(address, "/metrics")))


def metrics_address(api: ApiAddress, listeners: Iterable[Listener]) -> ApiAddress:
    """Return the address of the metrics. :raises Declined: if they are off, or cannot be reached from here."""
    found = sorted((each for each in listeners if each.protocol in _SCHEMES), key=lambda each: each.protocol)
    for listener in found:
        scheme = _SCHEMES[listener.protocol]
        if listener.is_wildcard or listener.interface == api.host:
            return ApiAddress(scheme, api.host, listener.port)
        if _is_loopback(listener.interface) and _is_loopback(api.host):
            return ApiAddress(scheme, listener.interface, listener.port)
    if found:
        raise Declined(f"the metrics are served at {found[0].interface} only, which is not {api.host}: prometheus.bind")
    raise Declined("the broker has no listener for metrics: prometheus.port")


def size_rows(metrics: str) -> list[JsonObject]:
    """Return the number of messages in each range, from a histogram by protocol in Prometheus' text format."""
    below: Counter[float] = Counter()
    for bound, count in _BUCKET.findall(metrics):
        below[float(bound)] += int(float(count))
    if not below:
        raise Declined("the metrics of the broker have no sizes of messages")
    bounds = sorted(below)
    counts = [below[bounds[0]], *(below[upper] - below[lower] for lower, upper in pairwise(bounds))]
    total = max(below[bounds[-1]], 1)
    return [
        {"Message Size": _range(lower, upper), "Count": count, "Percentage": f"{100 * count / total:.2f}"}
        for lower, upper, count in zip([0.0, *bounds], bounds, counts, strict=False)
    ]


def _range(lower: float, upper: float) -> str:
    """Name a range as RabbitMQ does: ``between 1KB and 10KB``."""
    if lower == 0:
        return f"below {_size(upper)}"
    if upper == float("inf"):
        return f"above {_size(lower)}"
    return f"between {_size(lower)} and {_size(upper)}"


def _size(value: float) -> str:
    for factor, unit in ((1_000_000, "MB"), (1000, "KB")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}B"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
