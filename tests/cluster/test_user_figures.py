"""The figures of users in other cells count as a whole round, and not for long."""

from collections.abc import Mapping

import pytest

from gateway.cluster.cells import UserFigures, decode_figures, frames_of
from gateway.cluster.cells.user_figures import FORGOTTEN_S, Counts
from gateway.cluster.queue_log import Epoch
from gateway.testing.clock import FakeClock

COUNTS: Counts = (1, 2, 3, 4, 5)
MANY = {f"user-{number}": COUNTS for number in range(1200)}


class Seen:
    """The figures as a node knows them, and what comes to it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.figures = UserFigures(self.clock)

    def take(
        self, users: Mapping[str, Counts], *, cell: int = 2, epoch: int = 1, round: int = 1, lost: int = 0
    ) -> None:
        for frame in list(frames_of(cell, Epoch(epoch), round, users))[lost:]:
            found = decode_figures(frame)
            assert found is not None
            self.figures.take(found)

    def connections(self, user: str, own: int = 1) -> int:
        return self.figures.elsewhere(own, "max-connections", user)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_each_limit_has_its_count_and_the_own_cell_is_left_out(seen: Seen) -> None:
    seen.take({"anna": COUNTS})
    seen.take({"anna": (10, 0, 0, 0, 0)}, cell=3)
    limits = ("max-connections", "max-channels", "max-queues", "max-bindings", "max-consumers")
    assert [seen.figures.elsewhere(3, limit, "anna") for limit in limits] == [1, 2, 3, 4, 5]
    assert [seen.connections("anna", own) for own in (1, 2, 3)] == [11, 10, 1]
    assert seen.connections("bert") == 0


def test_a_round_counts_as_a_whole(seen: Seen) -> None:
    seen.take(MANY)
    assert seen.connections("user-1199") == 1
    seen.take(dict.fromkeys(MANY, (7, 0, 0, 0, 0)), round=2, lost=1)
    assert seen.connections("user-1199") == 1
    seen.take({"user-0": COUNTS}, round=3)
    assert (seen.connections("user-0"), seen.connections("user-1199")) == (1, 0)


@pytest.mark.parametrize("character", ["\x01", "\U0001f600"])
def test_frames_with_long_names_fit_in_the_smallest_payload(seen: Seen, character: str) -> None:
    users = {f"{number:04}{character * (251 // len(character.encode()))}": (2**63,) * 5 for number in range(1200)}
    frames = list(frames_of(2, Epoch(2**63), 2**63, users))
    assert max(map(len, frames)) < 512 * 1024
    seen.take(users)
    assert {seen.connections(user) for user in users} == {2**63}


def test_a_deposed_leader_is_ignored(seen: Seen) -> None:
    seen.take({"anna": COUNTS}, epoch=2)
    seen.take({"anna": (9, 0, 0, 0, 0)}, epoch=1, round=50)
    assert seen.connections("anna") == 1
    seen.take({}, epoch=3)
    assert seen.connections("anna") == 0


def test_figures_that_are_not_sent_again_are_forgotten(seen: Seen) -> None:
    seen.take({"anna": COUNTS})
    seen.clock.advance(FORGOTTEN_S + 1)
    assert seen.connections("anna") == 0
