"""Publishers of a leader whose lease is not renewed are blocked before it ends."""

from gateway.cluster.leadership.timing import LEASE_S, TICK_S
from gateway.node.cluster.lease_watch import LeaseWatch
from gateway.testing import FakeClock


class Store:
    """A store that notes what is reported."""

    def __init__(self) -> None:
        self.reports: list[str] = []

    def stall(self, part: str, reason: str) -> None:
        self.reports.append(f"{part}: {reason}")

    def resume(self, part: str) -> None:
        self.reports.append(f"{part} again")


def test_the_store_is_stalled_while_the_lease_is_about_to_end() -> None:
    clock, store, renewed_s = FakeClock(), Store(), [0.0]
    began_s = clock.monotonic_s()
    LeaseWatch(clock, lambda: LEASE_S - (clock.monotonic_s() - began_s - renewed_s[0]), store).start()  # type: ignore[arg-type]  # it notes all that the watch calls
    clock.advance(2.5)
    assert store.reports == []
    clock.advance(TICK_S)
    assert store.reports == ["lease: the engine does not renew the leader's lease, which ends in 1.0 s"]
    renewed_s[0] = clock.monotonic_s() - began_s
    clock.advance(TICK_S)
    assert store.reports[1:] == ["lease again"]
    clock.advance(LEASE_S + 10 * TICK_S)
    assert len(store.reports) == 3
    renewed_s[0] = clock.monotonic_s() - began_s
    clock.advance(LEASE_S)
    assert len(store.reports) == 3, "a leader that has stepped down is watched"
