"""Compares the answers of a replay with the recorded ones."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gateway.simulation.replay.client import ReplayClient


def differences(clients: Iterable[ReplayClient]) -> Iterator[str]:
    """Yield a line for each answer that a connection got in the recording or in the replay alone."""
    for client in clients:
        who = f"connection {client.number} ({client.listener})"
        for note in client.notes:
            yield f"{who}: {note}"
        recorded, replayed = Counter(client.recorded), Counter(client.answers)
        for answer in dict.fromkeys([*client.recorded, *client.answers]):
            before, now = recorded[answer], replayed[answer]
            if before > now:
                yield f"{who}: {before - now} x '{answer}' in the recording only{_first(client)}"
            elif now > before and not client.is_incomplete:
                yield f"{who}: {now - before} x '{answer}' in the replay only{_first(client)}"


def _first(client: ReplayClient) -> str:
    """Return where the answers of a connection part."""
    pairs = zip([*client.recorded, ""], [*client.answers, ""], strict=False)
    at = next((number for number, (before, now) in enumerate(pairs) if before != now), 0)
    return f"; the answers part at the {at + 1}."
