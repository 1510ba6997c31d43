"""Reason codes: their packets in the specification, and the code of each refusal."""

import pytest

from gateway.kernel import errors
from gateway.kernel.errors import AccessRefused, GatewayError, InternalError, NotAllowed, NotFound, Refused
from gateway_mqtt.codec.packet_types import PacketType
from gateway_mqtt.codec.reasons import CARRIERS, CONNACK_3, REFUSALS, SERVER_ONLY, ReasonCode, carried_by, reason_for

#: Table 2-6 by packet.
BY_PACKET = {
    PacketType.CONNACK: "00 80 81 82 83 84 85 86 87 88 89 8a 8c 90 95 97 99 9a 9b 9c 9d 9f",
    PacketType.PUBACK: "00 10 80 83 87 90 91 97 99",
    PacketType.PUBREC: "00 10 80 83 87 90 91 97 99",
    PacketType.PUBREL: "00 92",
    PacketType.PUBCOMP: "00 92",
    PacketType.SUBACK: "00 01 02 80 83 87 8f 91 97 9e a1 a2",
    PacketType.UNSUBACK: "00 11 80 83 87 8f 91",
    PacketType.DISCONNECT: (
        "00 04 80 81 82 83 87 89 8b 8c 8d 8e 8f 90 93 94 95 96 97 98 99 9a 9b 9c 9d 9e 9f a0 a1 a2"
    ),
    PacketType.AUTH: "00 18 19",
}


@pytest.mark.parametrize(("packet_type", "codes"), BY_PACKET.items())
def test_packets_carry_the_reasons_of_their_tables(packet_type: PacketType, codes: str) -> None:
    assert carried_by(packet_type) == {ReasonCode(int(code, 16)) for code in codes.split()}


def test_every_reason_is_carried_by_a_packet() -> None:
    assert CARRIERS.keys() == set(ReasonCode)
    assert all(CARRIERS.values())


def test_errors_begin_at_0x80() -> None:
    assert not ReasonCode.RE_AUTHENTICATE.is_error
    assert ReasonCode.UNSPECIFIED_ERROR.is_error


def test_server_only_reasons_are_allowed_in_disconnect() -> None:
    assert carried_by(PacketType.DISCONNECT) >= SERVER_ONLY


def test_3_x_has_six_return_codes_for_refusals() -> None:
    assert set(CONNACK_3.values()) == {0, 1, 2, 3, 4, 5}
    assert CONNACK_3[ReasonCode.UNSUPPORTED_PROTOCOL_VERSION] == 1
    assert CONNACK_3[ReasonCode.CLIENT_IDENTIFIER_NOT_VALID] == 2
    assert CONNACK_3[ReasonCode.SERVER_UNAVAILABLE] == 3
    assert CONNACK_3[ReasonCode.BAD_USER_NAME_OR_PASSWORD] == 4
    assert CONNACK_3[ReasonCode.NOT_AUTHORIZED] == 5
    assert ReasonCode.MALFORMED_PACKET not in CONNACK_3


def every(kind: type[GatewayError]) -> list[type[GatewayError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in every(child))]


def test_every_refusal_of_the_kernel_has_a_reason() -> None:
    refusals = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Refused)}
    assert refusals - {Refused} == REFUSALS.keys()


@pytest.mark.parametrize("kind", every(Refused))
def test_the_reason_of_a_refusal_is_allowed_in_puback_and_suback(kind: type[Refused]) -> None:
    reason = reason_for(kind("because"))
    assert reason.is_error
    assert CARRIERS[reason] >= {PacketType.PUBACK, PacketType.SUBACK, PacketType.CONNACK, PacketType.DISCONNECT}


def test_an_unknown_refusal_has_the_reason_of_its_parent_class() -> None:
    class Stricter(AccessRefused):
        pass

    class Odd(Refused):
        pass

    assert reason_for(Stricter("no")) is ReasonCode.NOT_AUTHORIZED
    assert reason_for(Odd("no")) is ReasonCode.UNSPECIFIED_ERROR


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (AccessRefused, ReasonCode.NOT_AUTHORIZED),
        (NotAllowed, ReasonCode.QUOTA_EXCEEDED),
        (NotFound, ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        (InternalError, ReasonCode.UNSPECIFIED_ERROR),
    ],
)
def test_the_reason_of_each_refusal(kind: type[Refused], reason: ReasonCode) -> None:
    assert reason_for(kind("why")) is reason
