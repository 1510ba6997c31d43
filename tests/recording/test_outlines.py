"""Outlines of what the broker sends, and the names that it chose."""

from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame, header
from pamqp.body import ContentBody

from gateway.recording.outlines.outline import AnswerOutline
from tests.recording.cutting import CUTS, pieces

NAME = "Zm9vYmFyZm9vYmFyZm9vYm"


def outline(listener: str, data: bytes, cuts: list[int]) -> tuple[list[str], list[str]]:
    found = AnswerOutline(listener)
    for piece in pieces(data, cuts):
        found.feed(piece)
    return found.take()


def amqp_answers() -> bytes:
    answers = (
        commands.Queue.DeclareOk(f"amq.gen-{NAME}", 0, 0),
        commands.Basic.Ack(1),
        commands.Basic.Deliver("tag", 1, False, "", "orders"),
        header.ContentHeader(0, 3, commands.Basic.Properties()),
        ContentBody(b"abc"),
        commands.Channel.Close(404, "NOT_FOUND", 50, 10),
    )
    return b"".join(frame.marshal(each, 1) for each in answers)


EXAMPLES = {
    "amqp": (amqp_answers(), ["queue.declare-ok", "basic.deliver", "content of 3 bytes", "channel.close 404"], [NAME]),
    "mqtt": (b"\x20\2\0\5\x30\6\0\3a/bx\xd0\0\x40\2\0\1", ["CONNACK 0x05", "PUBLISH a/b QoS 0", "PUBACK"], []),
    "stomp": (
        f"CONNECTED\nsession:session-{NAME}\n\n\0\n\nMESSAGE\ndestination:/queue/a\ncontent-length:2\n\nab\0".encode(),
        ["CONNECTED", "MESSAGE /queue/a"],
        [NAME],
    ),
    "web_mqtt": (b"HTTP/1.1 101 \r\na: b\r\n\r\n\x82\4\x20\2\0\0", ["HTTP 101", "CONNACK"], []),
    "management": (b"HTTP/1.1 204 \r\n\r\nHTTP/1.1 404 \r\n\r\nbody", ["HTTP 204", "HTTP 404"], []),
}


@given(st.sampled_from(sorted(EXAMPLES)), CUTS)
def test_an_outline_has_names_and_codes_for_every_cut(listener: str, cuts: list[int]) -> None:
    data, said, names = EXAMPLES[listener]
    assert outline(listener, data, cuts) == (said, names)
