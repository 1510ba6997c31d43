"""Settings of the metrics for Prometheus."""

from gateway.config.kinds import BindAddress, ListenerPort
from gateway.config.section import Section


class Prometheus(Section):
    """Metrics in Prometheus' text formats, under RabbitMQ's names; see docs/monitoring.md."""

    port: ListenerPort = 15692
    """Port of the metrics listener."""

    bind: BindAddress = "127.0.0.1"
    """Address of the metrics listeners; ``*`` is every interface. The metrics contain the names of queues."""

    authentication: bool = False
    """Whether scrapers must log in as a user with the tag ``monitoring`` or ``administrator``."""

    per_object: bool = False
    """Whether ``/metrics`` has the metrics of single queues, channels and connections, instead of sums."""


class PrometheusTls(Section):
    """Metrics for Prometheus over TLS."""

    port: ListenerPort = None
    """Port of the TLS listener; the default is 15691 if ``tls.certificate`` is set."""
