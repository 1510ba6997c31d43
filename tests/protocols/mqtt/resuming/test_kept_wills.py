"""The will of a client that a node keeps is not published when its leader stops."""

import pytest

from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import Will

STOP = "broker forced connection closure with reason 'shutdown'"


@pytest.mark.parametrize(("is_kept", "reason", "published"), [
    (False, STOP, ["PUBLISH w 'gone'"]),
    (True, STOP, []),
    (True, "closed by an operator", ["PUBLISH w 'gone'"]),
])  # fmt: skip
def test_a_will_is_withheld_for_a_kept_client_of_a_broker_that_stops(
    is_kept: bool, reason: str, published: list[str]
) -> None:
    gateway = Gateway()
    listener = gateway.client("listener")
    listener.subscribe("w")
    client = gateway.client("client", will=Will("w"))
    client.is_kept = is_kept
    client.force_close(reason)
    assert listener.receive() == published
