"""ERROR texts of refusals: a total table of all kinds in the kernel."""

import pytest

from gateway.kernel.errors import GatewayError, ProtocolViolation, Refused, StorageError
from gateway_stomp.errors import MESSAGES, StompError, error_of

#: Refusals of other protocols, which the kernel never raises.
REFUSALS = [kind for kind in Refused.__subclasses__() if kind.__module__ == Refused.__module__]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda kind: kind.__name__)
def test_every_refusal_has_a_message(refusal: type[Refused]) -> None:
    assert error_of(refusal("why")) == (MESSAGES[refusal], f"{MESSAGES[refusal].upper()} - why")


@pytest.mark.parametrize(
    "error", [ProtocolViolation("why"), StorageError("why")], ids=lambda error: type(error).__name__
)
def test_other_errors_have_a_message_too(error: GatewayError) -> None:
    assert error_of(error) == ("Processing error", "why")


def test_a_violation_has_its_own_message() -> None:
    assert error_of(StompError("Bad command", "why")) == ("Bad command", "why")


def test_error_texts_are_truncated() -> None:
    assert len(error_of(StompError("Bad command", "x" * 10**6))[1]) == 1000
