"""The codec of the simulated STOMP clients, against the broker's own, which shares nothing with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.simulation.clients.stomp.frames import FrameReader, StompFrame, UnreadableFrame, write
from gateway_stomp.decoder import FrameDecoder
from gateway_stomp.frames import HEARTBEAT, encode
from gateway_stomp.versions import Version

VERSIONS = {"1.0": Version.V10, "1.1": Version.V11, "1.2": Version.V12}
ESCAPED = st.text(st.sampled_from("ab:\\\n é"), min_size=1, max_size=20)
LIMIT = 2**20


def texts(version: str) -> st.SearchStrategy[str]:
    """Return texts that a header of the version can hold: 1.0 has no escapes."""
    return st.text(st.sampled_from("ab"), min_size=1, max_size=20) if version == "1.0" else ESCAPED


@given(version=st.sampled_from(tuple(VERSIONS)), data=st.data(), body=st.binary(max_size=200))
def test_the_broker_reads_what_a_client_writes(version: str, data: st.DataObject, body: bytes) -> None:
    headers = data.draw(st.dictionaries(texts(version), texts(version), max_size=4))
    decoder = FrameDecoder(LIMIT, LIMIT, 100, LIMIT, LIMIT)
    decoder.version = VERSIONS[version]
    ((head, read),) = decoder.feed(write(StompFrame("SEND", headers, body), version))
    assert head.verb == "SEND"
    assert {name: head.headers[name] for name in headers} == headers
    assert read == body


@given(version=st.sampled_from(tuple(VERSIONS)), data=st.data(), body=st.binary(max_size=200), size=st.integers(1, 50))
def test_a_client_reads_bytes_cut_anywhere(version: str, data: st.DataObject, body: bytes, size: int) -> None:
    headers = data.draw(st.dictionaries(texts(version), texts(version), max_size=4))
    written = HEARTBEAT + encode("MESSAGE", headers.items(), VERSIONS[version], body)
    written += HEARTBEAT + encode("RECEIPT", [("receipt-id", "1")], VERSIONS[version])
    reader = FrameReader()
    reader.version = version
    pieces = (written[at : at + size] for at in range(0, len(written), size))
    message, receipt = [frame for piece in pieces for frame in reader.feed(piece)]
    assert message.command == "MESSAGE"
    assert {name: message.headers[name] for name in headers} == headers
    assert message.body == body
    assert receipt == StompFrame("RECEIPT", {"receipt-id": "1"})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"SEND\na:b\n\n\0", id="a client's command"),
        pytest.param(b"MESSAGE\nno colon\n\n\0", id="a header without a colon"),
        pytest.param(b"MESSAGE\na:\\t\n\n\0", id="an escape that there is not"),
        pytest.param(b"MESSAGE\ncontent-length:1\n\nab\0", id="a body longer than its length"),
    ],
)
def test_what_no_broker_may_send_is_not_read(data: bytes) -> None:
    reader = FrameReader()
    reader.version = "1.2"
    with pytest.raises(UnreadableFrame):
        list(reader.feed(data))
