"""Input: contents in one piece or in several, the arguments of basic.publish, logins and negotiation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands

from gateway.access import CertificateSubject, Credentials
from gateway.kernel.errors import NotImplementedHere, ProtocolViolation
from gateway_amqp.content import Assembly, whole_content
from gateway_amqp.errors import REPLY_CODES, FrameError, octets, reply_code, reply_text
from gateway_amqp.incoming import IncomingBytes
from gateway_amqp.login import credentials
from gateway_amqp.methods import encode_method
from gateway_amqp.publishing import parse_publish
from gateway_amqp.tables import encode_table
from gateway_amqp.tuning import Tuning, capabilities
from tests.protocols.amqp.frames import content_header, frame

# ---------------------------------------------------------------- contents


def assembled(data: bytes) -> tuple[bytes, bytes, int] | None:
    """Return the result of the frame-by-frame path for ``data`` on channel 1, in the form of ``whole_content``."""
    assembly, position = Assembly(b""), 0
    while not assembly.is_complete:
        if len(data) - position < 8:
            return None
        kind, channel = data[position], int.from_bytes(data[position + 1 : position + 3], "big")
        stop = position + 7 + int.from_bytes(data[position + 3 : position + 7], "big")
        if stop >= len(data) or data[stop] != 0xCE or channel != 1:
            return None
        try:
            assembly.add(kind, data[position + 7 : stop])
        except FrameError:
            return None
        position = stop + 1
    assert assembly.properties is not None
    return assembly.properties, assembly.body, position


headers = st.builds(
    content_header,
    st.integers(0, 4),
    st.sampled_from([b"\0\0", b"\x80\0\1x", b""]),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([60, 60, 60, 50]),
    st.sampled_from([0, 0, 0, 5]),
)
bodies = st.builds(frame, st.sampled_from([3, 3, 3, 1, 2, 8]), st.sampled_from([1, 1, 1, 2]), st.binary(max_size=4))


@given(st.lists(headers | bodies, max_size=4).map(b"".join), st.integers(0, 12), st.binary(max_size=3))
def test_the_fast_path_accepts_nothing_that_the_general_path_refuses(data: bytes, cut: int, tail: bytes) -> None:
    data = data[: len(data) - cut] + tail
    quick = whole_content(data, 0, len(data), 1)
    assert quick is None or quick == assembled(data)


@given(st.binary(max_size=4000), st.integers(0, 9))
def test_the_fast_path_accepts_every_plain_content(body: bytes, offset: int) -> None:
    data = bytes(offset) + content_header(len(body), b"\x80\0\1x") + (frame(3, 1, body) if body else b"")
    assert whole_content(data + b"next", offset, len(data) + 4, 1) == (b"\x80\0\1x", body, len(data))


def test_a_body_in_pieces_is_joined() -> None:
    assembly = Assembly(b"")
    assembly.add(2, content_header(6)[7:-1])
    for piece in (b"ab", b"", b"cde", b"f"):
        assert not assembly.is_complete
        assembly.add(3, piece)
    assert (assembly.is_complete, assembly.body) == (True, b"abcdef")


# ---------------------------------------------------------------- basic.publish


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.text(st.characters(codec="utf-8"), max_size=60),
       st.booleans())  # fmt: skip
def test_basic_publish_is_decoded(exchange: str, routing_key: str, mandatory: bool) -> None:
    method = commands.Basic.Publish(0, "", routing_key, mandatory, False)
    method.exchange = exchange
    assert parse_publish(encode_method(1, method)[7:-1]) == (exchange, routing_key, mandatory)


def test_immediate_is_not_implemented() -> None:
    with pytest.raises(NotImplementedHere, match="immediate=true"):
        parse_publish(encode_method(1, commands.Basic.Publish(0, "", "k", True, True))[7:-1])


@given(st.binary(max_size=40))
def test_arbitrary_arguments_of_basic_publish_are_decoded_or_refused(rest: bytes) -> None:
    try:
        exchange, routing_key, _ = parse_publish(b"\0\x3c\0\x28" + rest)
    except (FrameError, NotImplementedHere):
        return
    assert len(rest) == 5 + len(exchange.encode()) + len(routing_key.encode())


# ---------------------------------------------------------------- login

OFFERED = "PLAIN AMQPLAIN EXTERNAL"


@pytest.mark.parametrize("response", [b"\0user\0secret", encode_table({"LOGIN": "user", "PASSWORD": "secret"})[4:]])
def test_a_name_and_a_password_are_decoded(response: bytes) -> None:
    mechanism = "PLAIN" if response.startswith(b"\0") else "AMQPLAIN"
    assert credentials(mechanism, response, "::1", None, OFFERED) == Credentials(
        mechanism, "user", "secret", peer_host="::1"
    )


def test_an_external_response_uses_the_certificate() -> None:
    subject = CertificateSubject("client", "CN=client")
    assert credentials("EXTERNAL", b"", "::1", subject, OFFERED) == Credentials(
        "EXTERNAL", certificate=subject, peer_host="::1"
    )


@given(st.sampled_from(["PLAIN", "AMQPLAIN", "EXTERNAL", "", "SCRAM"]), st.binary(max_size=60))
def test_any_response_is_decoded_or_refused(mechanism: str, response: bytes) -> None:
    try:
        claimed = credentials(mechanism, response, "", None, OFFERED)
    except ProtocolViolation:
        return
    assert claimed.mechanism == mechanism


# ---------------------------------------------------------------- tuning


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [((100, 5000, 7), (100, 5000, 7)), ((0, 0, 0), (2047, 131_072, 0)), ((2047, 131_072, 65_535),
                                                                        (2047, 131_072, 65_535))],
)  # fmt: skip
def test_the_client_may_choose_values_below_the_servers_limits(
    wanted: tuple[int, int, int], agreed: tuple[int, ...]
) -> None:
    tuning = Tuning(commands.Connection.TuneOk(*wanted), 131_072, 2047)
    assert (tuning.channel_max, tuning.frame_max, tuning.heartbeat_s) == agreed


@pytest.mark.parametrize("wanted", [(2048, 131_072, 0), (2047, 131_073, 0), (2047, 4095, 0)])
def test_values_above_the_servers_limits_are_refused(wanted: tuple[int, int, int]) -> None:
    with pytest.raises(FrameError, match="failed to negotiate") as refused:
        Tuning(commands.Connection.TuneOk(*wanted), 131_072, 2047)
    assert (refused.value.code, refused.value.class_id, refused.value.method_id) == (530, 10, 31)


def test_a_capability_counts_only_if_its_value_is_true() -> None:
    assert capabilities({"capabilities": {"a": True, "b": False, "c": 1, "d": "yes"}}) == {"a"}
    assert capabilities({"capabilities": ["a"]}) == frozenset()
    assert capabilities({}) == frozenset()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("refusal", REPLY_CODES, ids=lambda kind: kind.__name__)
def test_a_refusal_and_its_subclasses_share_a_code(refusal: type[Exception]) -> None:
    refined = type("Refined", (refusal,), {})
    assert reply_code(refined("x")) == REPLY_CODES[refusal]  # type: ignore[index]


@given(st.text(max_size=300))
def test_a_reply_text_fits_a_short_string(explanation: str) -> None:
    text = reply_text(404, explanation.encode("utf-8", "ignore").decode())
    assert len(text.encode()) <= 255
    assert text.startswith("NOT_FOUND")


def test_octets_are_shown_as_erlang_does() -> None:
    assert [octets(payload) for payload in (b"", b"abc", b"\0a")] == ["<<>>", '<<"abc">>', "<<0,97>>"]


def test_the_size_of_a_frame_of_which_a_part_was_received_is_known() -> None:
    """Reads of large frames grow by it."""
    incoming = IncomingBytes()
    assert incoming.awaited == 0
    incoming.keep(b"whole frame, a part of", 13, 70_000)
    assert incoming.awaited == 70_000
    assert incoming.add(bytes(60_000)) is None
    assert incoming.awaited == 70_000
    assert incoming.add(bytes(10_000)) is not None
    assert incoming.awaited == 0
