"""A run notices messages and connections that stay in memory after their clients have left."""

import pytest

from gateway.kernel.queueing.ledger import Ledger
from gateway.net.connection_io import ConnectionIO
from gateway.simulation.run import run_seed

RULE = "no message and no connection is left in memory"

SEEDS = range(40)


def broken_rules() -> set[str]:
    return {finding.rule for seed in SEEDS for finding in run_seed(seed).findings}


def test_deliveries_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    add = Ledger.add

    def leaking_add(self: Ledger, *arguments: object) -> int:
        tag = add(self, *arguments)  # type: ignore[arg-type]  # passed on
        kept.append(self._deliveries[tag])
        return tag

    monkeypatch.setattr(Ledger, "add", leaking_add)
    assert broken_rules() == {RULE}


def test_connections_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[object] = []
    detach = ConnectionIO.detach

    def leaking_detach(self: ConnectionIO) -> None:
        kept.append(self.machine)
        detach(self)

    monkeypatch.setattr(ConnectionIO, "detach", leaking_detach)
    assert broken_rules() == {RULE}
