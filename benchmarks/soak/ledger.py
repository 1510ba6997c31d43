"""The account of the soak: every message confirmed to its publisher, and what arrived of them."""

from collections import Counter
from collections.abc import Collection, Iterable
from threading import Lock


class Miscounted(Exception):
    """A message did not arrive, or arrived that nobody expects; the text says which."""


class Ledger:
    """Counts by name of the activity. Threads share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.confirmed: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self.rounds: Counter[str] = Counter()
        self.failures: list[str] = []

    def settle(self, activity: str, sent: Collection[bytes], came: Iterable[bytes]) -> None:
        """Compare what was confirmed with what arrived. :raises Miscounted: when these differ."""
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
        """Messages confirmed to their publishers so far."""
        return self.confirmed.total()

    @property
    def all_arrived(self) -> int:
        """How many of these arrived."""
        return self.arrived.total()
