"""How refusals are told: every kind the kernel has, in a table that is total."""

import pytest

from gateway.kernel.errors import GatewayError, ProtocolViolation, Refused, StorageError
from gateway_stomp.errors import MESSAGES, StompError, error_of

#: Other protocols have kinds of their own, which the kernel never raises.
REFUSALS = [kind for kind in Refused.__subclasses__() if kind.__module__ == Refused.__module__]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda kind: kind.__name__)
def test_every_refusal_has_a_message(refusal: type[Refused]) -> None:
    assert error_of(refusal("why")) == (MESSAGES[refusal], f"{MESSAGES[refusal].upper()} - why")


@pytest.mark.parametrize(
    "error", [ProtocolViolation("why"), StorageError("why")], ids=lambda error: type(error).__name__
)
def test_what_else_there_is_has_one_too(error: GatewayError) -> None:
    assert error_of(error) == ("Processing error", "why")


def test_a_violation_brings_its_own() -> None:
    assert error_of(StompError("Bad command", "why")) == ("Bad command", "why")


def test_what_is_told_is_never_long() -> None:
    assert len(error_of(StompError("Bad command", "x" * 10**6))[1]) == 1000
