"""The order of the pages of the site: four parts, by what a reader wants."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Part(NamedTuple):
    """A part of the site: its purpose, and the pages of each of its sections, as paths from the top."""

    purpose: str
    sections: Mapping[str, tuple[str, ...]]

    @property
    def pages(self) -> tuple[str, ...]:
        """All pages of the part, in order."""
        return tuple(page for pages in self.sections.values() for page in pages)


PARTS: Final[Mapping[str, Part]] = {
    "Tutorials": Part(
        "Learn by doing. Tests paste all programs and commands of these pages, but for installations.",
        {
            "First steps": ("README.md", "docs/install.md", "docs/tutorial.md"),
            "Protocols": ("docs/protocols/amqp.md", "docs/protocols/mqtt.md", "docs/protocols/stomp.md"),
            "Plugins": (
                "docs/plugins/exchange-type.md",
                "docs/plugins/queue-feature.md",
                "docs/plugins/interceptor.md",
                "docs/plugins/operators.md",
                "docs/plugins/io.md",
            ),
            "Examples": (
                "examples/README.md",
                "examples/sensors-dashboard/README.md",
                "examples/celery-retries/README.md",
                "examples/stomp-legacy/README.md",
                "examples/mqtt-request-response/README.md",
                "examples/digital-twin/README.md",
                "examples/configurations/README.md",
            ),
        },
    ),
    "How to": Part(
        "Reach a goal.",
        {
            "Route and keep messages": (
                "docs/exchanges.md",
                "docs/queues.md",
                "docs/queues-extras.md",
                "docs/protocols/arguments.md",
                "docs/consumers.md",
                "docs/streams.md",
                "docs/selectors.md",
                "docs/workbench.md",
            ),
            "Move": (
                "docs/moving-from-rabbitmq.md",
                "docs/moving-from-mosquitto.md",
                "docs/moving-from-activemq.md",
                "docs/bridges.md",
            ),
            "Operate": (
                "docs/operations.md",
                "docs/performance/sizing.md",
                "docs/monitoring.md",
                "docs/tracing.md",
                "docs/cluster.md",
                "docs/upgrading.md",
                "docs/troubleshooting.md",
                "docs/ui.md",
                "docs/audit.md",
                "docs/recording.md",
            ),
            "Control access": ("docs/users.md", "docs/access.md", "docs/access-servers.md", "docs/security.md"),
            "Analyse": (
                "docs/archive.md",
                "docs/sql.md",
                "docs/arrow.md",
                "docs/spark.md",
                "docs/pipeline.md",
            ),
            "Test": ("docs/testing.md", "docs/plugins/testing.md"),
        },
    ),
    "Reference": Part(
        "Look it up.",
        {
            "Commands and settings": (
                "docs/configuration.md",
                "docs/reference/gateway.md",
                "docs/gatewayctl.md",
                "docs/reference/gatewayctl.md",
            ),
            "Interfaces": ("docs/management.md", "docs/reference/http.md", "docs/metrics.md"),
            "Messages": ("docs/reference/arguments.md", "docs/reference/errors.md", "docs/behaviour.md"),
            "Plugins": (
                "docs/plugins/README.md",
                "docs/reference/hooks.md",
                "docs/plugins/exchange-types.md",
                "docs/plugins/interceptors.md",
                "docs/plugins/events.md",
                "docs/plugins/metrics.md",
            ),
        },
    ),
    "Explanation": Part(
        "Understand why.",
        {
            "The broker": (
                "docs/architecture.md",
                "docs/guarantees.md",
                "docs/storage.md",
                "docs/glossary.md",
                "docs/comparison.md",
            ),
            "How it is tested": ("docs/simulation.md", "docs/fuzzing.md", "tests/README.md"),
            "Measurements": (
                "docs/performance/README.md",
                "docs/performance/memory.md",
                "benchmarks/README.md",
                "benchmarks/results/index.md",
            ),
            "The project": ("CONTRIBUTING.md", "CHANGELOG.md", "docs/adr/index.md"),
        },
    ),
}


def front_page() -> str:
    """Return the page with which the site begins, which lists all others."""
    lines = ["# gateway", "", "A message broker in Python: AMQP 0-9-1, MQTT and STOMP on one kernel."]
    for title, part in PARTS.items():
        lines += ["", f"## {title}", "", part.purpose]
        for section, pages in part.sections.items():
            lines += ["", "```{toctree}", ":maxdepth: 1", f":caption: {title} - {section}", ""]
            lines += [page.removesuffix(".md") for page in pages]
            lines += ["```"]
    return "\n".join(lines) + "\n"
