"""The account of all messages: those confirmed to their publishers, and those that arrived."""

from collections import Counter
from collections.abc import Collection, Iterable
from threading import Lock


class Miscounted(Exception):
    """A message was lost or is unexpected; the text says which."""


class Ledger:
    """Counts by activity. Shared by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.confirmed: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self.failures: list[str] = []

    def settle(self, activity: str, sent: Collection[bytes], came: Iterable[bytes]) -> None:
        """Compare confirmed with arrived messages. :raises Miscounted: if they differ."""
        counts = Counter(came)
        missing = [body for body in sent if not counts[body]]
        strange = counts.keys() - set(sent)
        repeated = [body for body, count in counts.items() if count > 1]
        with self._lock:
            self.confirmed[activity] += len(sent)
            self.arrived[activity] += len(sent) - len(missing)
        if missing or strange or repeated:
            raise Miscounted(
                f"{len(missing)} of {len(sent)} missing {missing[:3]}, "
                f"{len(strange)} unexpected {sorted(strange)[:3]}, {len(repeated)} repeated {repeated[:3]}"
            )

    def ended(self, activity: str, failure: str = "") -> None:
        """Count a round of an activity."""
        with self._lock:
            self.rounds[activity] += 1
            if failure:
                self.failures.append(f"{activity}: {failure}")

    @property
    def all_confirmed(self) -> int:
        """The number of messages confirmed to their publishers so far."""
        return self.confirmed.total()

    @property
    def all_arrived(self) -> int:
        """The number of these that arrived."""
        return self.arrived.total()
