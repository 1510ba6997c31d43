"""Frames: input cut anywhere, the meaning of headers, and limits of size."""

import pytest

from tests.conformance.stomp.frames import connect, disconnect, frame, send, subscribe
from tests.conformance.stomp.tables import CLOSED, Row, error, rows, states
from tests.protocols.stomp.dialogue import Gateway

HEARD = "MESSAGE s /queue/q 'hi'"


def with_subscription(*frames: bytes) -> bytes:
    return subscribe("/queue/q") + b"".join(frames)


def crlf(data: bytes) -> bytes:
    """Return the frame with a carriage return before each end of line of its head."""
    head, blank, rest = data.partition(b"\n\n")
    return (head + blank).replace(b"\n", b"\r\n") + rest


FRAMES: list[Row] = [
    *rows("STOMP Frames: a command, headers, a blank line, a body, a NULL octet", "all of them",
          with_subscription(send("/queue/q", "a:b")), f"{HEARD} a=b"),
    *rows("STOMP Frames: a command, headers, a blank line, a body, a NULL octet", "no body",
          with_subscription(send("/queue/q", body=b"")), "MESSAGE s /queue/q ''"),
    *rows("STOMP Frames: the NULL octet may be followed by ends of lines", "several",
          with_subscription(send("/queue/q"), b"\n\n\n", send("/queue/q"), b"\n"), HEARD, HEARD),
    *rows("STOMP Frames: a line may end with a carriage return and a line feed", "all lines of the head",
          with_subscription(crlf(send("/queue/q", "a:b")), b"\r\n\r\n", crlf(send("/queue/q"))), f"{HEARD} a=b", HEARD),
    *rows("STOMP Frames: a line may end with a carriage return and a line feed", "some lines",
          with_subscription(b"SEND\r\ndestination:/queue/q\na:b\r\n\nhi\0"), f"{HEARD} a=b"),
    *rows("STOMP Frames: a line may end with a carriage return and a line feed", "one in the body",
          with_subscription(send("/queue/q", body=b"\r\nhi\r\n")), r"MESSAGE s /queue/q '\r\nhi\r\n'"),
    *rows("STOMP Frames: commands and headers are case sensitive", "a command",
          frame("Send", "destination:/queue/q"), *error("Bad command")),
    *rows("STOMP Frames: commands and headers are case sensitive", "a header",
          frame("SEND", "Destination:/queue/q"), *error("Missing destination")),
    *rows("Value Encoding: commands and headers are UTF-8", "a name and a value",
          with_subscription(send("/queue/q", "größe:Ø 3 µm")), f"{HEARD} größe=Ø 3 µm"),
    *rows("Value Encoding: commands and headers are UTF-8", "what is not",
          b"SEND\ndestination:/queue/q\na:\xff\n\n\0", *error("Invalid frame")),
    *rows("Value Encoding: nothing is escaped", "backslashes and colons",
          with_subscription(send("/queue/q", r"a:b\c:\n\t\\")), rf"{HEARD} a=b\c:\n\t\\"),
    *rows(r"Value Encoding: decoding translates \n, \c and \\", "a value",
          with_subscription(send("/queue/q", r"a:1\n2\c3\\4")), f"{HEARD} a=1\n2:3\\4"),
    *rows(r"Value Encoding: decoding translates \n, \c and \\", "a name",
          with_subscription(send("/queue/q", r"a\cb\\:1")), f"{HEARD} a:b\\=1"),
    *rows(r"Value Encoding: decoding translates \n, \c and \\", "a backslash, then an n",
          with_subscription(send("/queue/q", r"a:\\n")), rf"{HEARD} a=\n"),
    *rows(r"Value Encoding: decoding translates \n, \c and \\", "a destination",
          subscribe(r"/queue/a\cb") + send("/queue/a\\cb"), "MESSAGE s /queue/a:b 'hi'"),
    *rows(r"Value Encoding: decoding translates \r", "a value",
          with_subscription(send("/queue/q", r"a:1\r2")), f"{HEARD} a=1\r2"),
    *rows("Value Encoding: an undefined escape is fatal", "a tab",
          send("/queue/q", r"a:\t"), *error("Invalid header")),
    *rows("Value Encoding: an undefined escape is fatal", "a carriage return",
          send("/queue/q", r"a:\r"), *error("Invalid header"), versions="1.1"),
    *rows("Value Encoding: an undefined escape is fatal", "nothing behind it",
          send("/queue/q", "a:b\\"), *error("Invalid header")),
    *rows("Value Encoding: an undefined escape is fatal", "in a name",
          send("/queue/q", r"\a:b"), *error("Invalid header")),
    *rows("Value Encoding: headers are neither trimmed nor padded", "a value and a name",
          with_subscription(send("/queue/q", "a:  b  ", " c :d")), f"{HEARD} a=  b    c =d"),
    *rows("Value Encoding: headers are neither trimmed nor padded", "a destination",
          send(" /queue/q"), *error("Unknown destination")),
    *rows("Value Encoding: headers may be padded", "as the examples of 1.0 are",
          frame("SUBSCRIBE", "destination: /queue/q", "ack: auto") + send(" /queue/q"),
          "MESSAGE /queue/q 'hi'"),
    *rows("Body: only SEND, MESSAGE and ERROR have one", "SUBSCRIBE",
          frame("SUBSCRIBE", "id:s", "destination:/queue/q", "receipt:r", body=b"x"), *error("Invalid frame", "r")),
    *rows("Body: only SEND, MESSAGE and ERROR have one", "DISCONNECT",
          frame("DISCONNECT", body=b"x"), *error("Invalid frame")),
    *rows("Body: the body of SUBSCRIBE is ignored", "a body",
          frame("SUBSCRIBE", "id:s", "destination:/queue/q", body=b"x") + send("/queue/q"), HEARD),
    *rows("Header content-length: that many octets are read, of any value", "NULL octets",
          with_subscription(send("/queue/q", "content-length:5", body=b"\0a\0\n\0")),
          r"MESSAGE s /queue/q '\x00a\x00\n\x00'"),
    *rows("Header content-length: that many octets are read, of any value", "what looks like another frame",
          with_subscription(send("/queue/q", "content-length:13", body=b"\0SEND\na:b\n\n\0\n")),
          r"MESSAGE s /queue/q '\x00SEND\na:b\n\n\x00\n'"),
    *rows("Header content-length: that many octets are read, of any value", "none",
          with_subscription(send("/queue/q", "content-length:0", body=b"")), "MESSAGE s /queue/q ''"),
    *rows("Header content-length: a NULL octet still follows", "another octet",
          send("/queue/q", "content-length:2", body=b"hip"), *error("Invalid frame")),
    *rows("Header content-length: a NULL octet still follows", "it is not a number",
          send("/queue/q", "content-length:two"), *error("Invalid frame")),
    *rows("Header content-length: a NULL octet still follows", "it is negative",
          send("/queue/q", "content-length:-1"), *error("Invalid frame")),
    *rows("Header content-length: without content-length the first NULL octet ends the frame", "a body",
          with_subscription(b"SEND\ndestination:/queue/q\n\nhi\0"), HEARD),
    *rows("Repeated Header Entries: only the first entry counts", "the user's",
          with_subscription(send("/queue/q", "a:first", "a:second")), f"{HEARD} a=first"),
    *rows("Repeated Header Entries: only the first entry counts", "the destination",
          with_subscription(send("/queue/q", "destination:/queue/other")), HEARD),
    *rows("Size Limits: too many headers: ERROR, then close", "101",
          send("/queue/q", *(f"h{number}:x" for number in range(100))), *error("Invalid frame")),
    *rows("Size Limits: too long headers: ERROR, then close", "64 KiB",
          send("/queue/q", "a:" + "x" * 65_536), *error("Invalid frame")),
    *rows("Size Limits: too large a body: ERROR, then close", "17 MiB announced",
          send("/queue/q", f"content-length:{17 * 2**20}", body=b"begins"), *error("Frame too large")),
    *rows("Size Limits: too large a body: ERROR, then close", "17 MiB that do not end",
          send("/queue/q", body=b"x" * 17 * 2**20), *error("Frame too large")),
    *rows("Augmented BNF: a header has a name and a colon", "no colon",
          send("/queue/q", "nonsense"), *error("Invalid frame")),
    *rows("Augmented BNF: a header has a name and a colon", "no name",
          send("/queue/q", ":nonsense"), *error("Invalid frame")),
    *rows("Augmented BNF: a header's value may be empty", "the user's",
          with_subscription(send("/queue/q", "a:")), f"{HEARD} a="),
    *rows("Augmented BNF: a frame has to end before another begins", "a NULL octet in the head",
          b"SEND\ndestination:/queue/q\0SEND\n\n\0", *error("Invalid frame")),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), FRAMES)
def test_a_frame_is_decoded_as_specified(gateway: Gateway, version: str, sent: bytes, received: list[str]) -> None:
    assert gateway.client(version).request(sent) == received


@states("STOMP Frames: a command, headers, a blank line, a body, a NULL octet")
def test_frames_may_arrive_octet_by_octet(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    for octet in subscribe("/queue/q") + send("/queue/q", "content-length:3", body=b"a\0b"):
        client.machine.receive(bytes([octet]))
    assert client.request() == [r"MESSAGE s /queue/q 'a\x00b'"]


@states("Value Encoding: encoding is the reverse")
def test_header_values_are_escaped_in_output(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    [message] = client.request_frames(subscribe("/queue/q", id=r"s\c1"), send("/queue/q", r"a\cb:1\n2\c3\\4"))
    assert r"a\cb:1\n2\c3\\4" in message.lines
    assert r"subscription:s\c1" in message.lines
    [receipt] = client.request_frames(send("/queue/other", r"receipt:\\r\n\c"))
    assert receipt.lines == (r"receipt-id:\\r\n\c",)


@states("Value Encoding: CONNECT and CONNECTED escape nothing")
def test_backslashes_in_a_login_are_not_escapes(gateway: Gateway, version: str) -> None:
    gateway.add_user("a:b", r"c\d\n")
    assert gateway.new_client(version).request(connect(version, login="a:b", passcode=r"c\d\n")) == [
        f"CONNECTED {version}"
    ]


@states("Header content-length: MESSAGE and ERROR with a body have the header")
def test_frames_of_the_server_with_a_body_have_content_length(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    [message] = client.request_frames(subscribe("/queue/q"), send("/queue/q", "content-length:3", body=b"a\0b"))
    assert message.headers["content-length"] == "3"
    failure, _ = client.request_frames(frame("NONSENSE"))
    assert failure.headers["content-length"] == str(len(failure.body))


@states("Header content-type: MESSAGE and ERROR with a body should have the header")
def test_frames_of_the_server_with_a_body_have_content_type(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    [message] = client.request_frames(
        subscribe("/queue/q"), send("/queue/q", "content-type:application/json", body=b"[]")
    )
    assert message.headers["content-type"] == "application/json"
    failure, _ = client.request_frames(frame("NONSENSE"))
    assert failure.headers["content-type"] == "text/plain"


ASKING = [
    send("/queue/q", "receipt:r"),
    subscribe("/queue/q", "receipt:r"),
    subscribe("/topic/t") + frame("UNSUBSCRIBE", "id:s", "receipt:r"),
    frame("BEGIN", "transaction:t", "receipt:r"),
    frame("BEGIN", "transaction:t") + frame("COMMIT", "transaction:t", "receipt:r"),
    frame("BEGIN", "transaction:t") + frame("ABORT", "transaction:t", "receipt:r"),
]


@pytest.mark.parametrize("asking", ASKING, ids=lambda asking: asking.split(b"\0")[-2].split(b"\n")[0].decode())
@states("Header receipt: any frame but CONNECT may have the header, and RECEIPT answers")
def test_a_frame_with_a_receipt_header_gets_a_receipt(gateway: Gateway, version: str, asking: bytes) -> None:
    assert gateway.client(version).request(asking) == ["RECEIPT r"]


@states("Header receipt: any frame but CONNECT may have the header, and RECEIPT answers")
def test_an_acknowledgement_with_a_receipt_header_gets_a_receipt(gateway: Gateway, version: str) -> None:
    client = gateway.client(version)
    client.request(subscribe("/queue/q", "ack:client"), send("/queue/q"), send("/queue/q"))
    assert client.ack(0, "receipt:a") == ["RECEIPT a"]
    if version != "1.0":
        assert client.nack(1, "receipt:n", "requeue:false") == ["RECEIPT n"]
    assert client.request(disconnect("receipt:d")) == ["RECEIPT d", CLOSED]


@states("Size Limits: too large a body: ERROR, then close")
def test_the_frame_limit_is_smaller_before_the_login(gateway: Gateway, version: str) -> None:
    new_client = gateway.new_client(version)
    assert new_client.request(connect(version, "content-length:65536")) == list(error("Frame too large"))
