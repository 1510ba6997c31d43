"""A scraper of the metrics listener without sockets, and the samples that it reads."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gateway.management.http.site import site_of
from gateway.management.metrics.paths import metric_paths
from gateway.management.metrics.sources import MetricSources
from gateway.management.web.factory import HttpFactory
from gateway.net.turn_watch import TurnWatch
from tests.management.console import Answer, Console
from tests.protocols.amqp.dialogue import Gateway


class Samples:
    """The samples of one scrape."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = [sample for family in self.families.values() for sample in family.samples]

    @property
    def names(self) -> set[str]:
        """The names of all samples."""
        return {sample.name for sample in self._samples}

    def labels_of(self, name: str) -> list[Mapping[str, str]]:
        """Return the labels of each sample of this name."""
        return [sample.labels for sample in self._samples if sample.name == name]

    def all(self, name: str, **labels: str) -> list[float]:
        """Return the values of the samples of this name that have these labels."""
        return [s.value for s in self._samples if s.name == name and labels.items() <= s.labels.items()]

    def one(self, name: str, **labels: str) -> float:
        """Return the value of the only such sample."""
        (value,) = self.all(name, **labels)
        return value

    def sum(self, name: str, **labels: str) -> float:
        """Return the sum of such samples, of which there is at least one."""
        values = self.all(name, **labels)
        assert values, f"no sample {name} {labels}"
        return sum(values)


class Scraper(Console):
    """A scraper of a gateway's metrics."""

    prefix = ""

    def __init__(
        self, gateway: Gateway | None = None, *, requires_login: bool = False, per_object: bool = False, **given: Any
    ) -> None:
        self.turns = TurnWatch()
        self._rules = {"requires_login": requires_login, "per_object": per_object}
        self._given = given
        super().__init__(gateway)

    def _site(self) -> HttpFactory:
        self.sources = MetricSources(self.context, self.turns, **self._given)
        return site_of(self.context, metric_paths(self.sources, **self._rules))

    def answer(self, path: str = "/metrics", **options: Any) -> Answer:
        """Send a request, without a login by default."""
        return self.ask("GET", path, **{"user": None, **options})

    def scrape(self, path: str = "/metrics", **options: Any) -> Samples:
        """Return the samples of a path."""
        answer = self.answer(path, **options)
        assert answer.status == 200, answer
        return Samples(answer.content.decode())

    def sample(self) -> None:
        """Take a sample of the statistics, as the node does every five seconds."""
        for _ in self.statistics.sample():
            pass
