"""A few seconds of mutated sessions on each port; ``make fuzz`` runs for an hour each, with strict limits."""

from pathlib import Path

import pytest

from tests.fuzz.fuzzing import SETTINGS, answer_to, create_account, fuzz
from tests.fuzz.mutating import LARGEST, mutated
from tests.fuzz.ports import PORTS, Port
from tests.running import gateway_in

SECONDS = 6.0

#: Generous, for slow or busy machines.
LONGEST_S = 5.0
MOST_GROWTH = 150 * 2**20


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_mutated_sessions_do_not_affect_the_gateway_or_other_clients(port: Port, tmp_path: Path) -> None:
    with gateway_in(tmp_path, *SETTINGS) as gateway:
        report = fuzz(gateway, port, SECONDS, seed="make test")
        assert gateway.stop() == 0
    assert report.sessions >= 20
    assert report.longest.all_s < LONGEST_S, report
    assert report.at_end < report.after_start + MOST_GROWTH, report


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_sessions_follow_from_seed_and_number(port: Port) -> None:
    assert mutated(port.sessions, "s", 7) == mutated(port.sessions, "s", 7)
    many = [b"".join(mutated(port.sessions, "s", number)) for number in range(200)]
    assert len(set(many)) > 150
    assert all(len(data) <= LARGEST for data in many)
    assert len({len(mutated(port.sessions, "s", number)) for number in range(200)}) > 3


@pytest.mark.parametrize("port", PORTS.values(), ids=PORTS)
def test_the_unmutated_sessions_are_accepted(port: Port, tmp_path: Path) -> None:
    """Sessions that are refused immediately would test little: each one must get past its login."""
    with gateway_in(tmp_path, *SETTINGS) as gateway:
        create_account(gateway)
        for session in port.sessions:
            answer = answer_to(gateway.addresses[port.listener], b"".join(session))
            assert port.accepted in answer, (session[0], answer[:300])
