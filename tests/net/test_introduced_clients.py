"""Clients whose TLS and PROXY header end at a follower, and what the leader learns of them."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest
from twisted.protocols.tls import TLSMemoryBIOFactory

from gateway.access import CertificateSubject
from gateway.kernel.broker.connections import TlsInfo
from gateway.kernel.errors import ProtocolViolation
from gateway.net.forwarding.introduction import encode_introduction, parse_introduction
from gateway.net.forwarding.node_tls import NodeTls
from gateway.net.forwarding.passing import ForwardingFactory
from gateway.net.forwarding.taking import ForwardedFactory
from gateway.net.introduced import PLAIN, IntroducedClient, introduced_of
from gateway.net.proxied import ProxiedFactory
from tests.net.forwarding_nodes import SECRET, ForwardingNodes, leader_at

SECURE = IntroducedClient(
    TlsInfo("tlsv1.3", "aes_256_gcm", "any", "aead", "CN=ä,O=acme", "CN=authority", "2026 - 2027"),
    CertificateSubject("ä", "CN=ä,O=acme"),
    True,
    "https://example.org",
)
HEADER = b"PROXY TCP4 192.0.2.7 198.51.100.1 40000 5671\r\n"


class SecureNodes(ForwardingNodes):
    """A leader and a follower, whose port expects a PROXY header and TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.leader_tls = NodeTls("a")
        self.fingerprint = self.leader_tls.fingerprint
        self.leader = ForwardedFactory(SECRET, lambda cell: self.served, self.clock, tls=self.leader_tls.server)
        self.address = "127.0.0.1", self.listen(self.leader)
        own = NodeTls("b")
        follower = ForwardingFactory(
            "amqp",
            SECRET,
            lambda cell: leader_at(self.address, 0, self.fingerprint),
            self.loop.reactor,
            self.clock,
            self.counts,
            "b",
            tls=own.client,
        )
        self.port = self.listen(ProxiedFactory(TLSMemoryBIOFactory(own.server, False, follower), self.clock, 10))

    def talk(self) -> threading.Thread:
        """Connect as a client that says hello, and echoes nothing."""

        def work() -> None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as plain:
                plain.sendall(HEADER)
                with context.wrap_socket(plain) as secured:
                    secured.sendall(b"hello")
                    self.answer = secured.recv(100)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread


@pytest.fixture
def nodes() -> Iterator[SecureNodes]:
    nodes = SecureNodes()
    yield nodes
    nodes.close()


@pytest.mark.parametrize("client", [PLAIN, SECURE], ids=["plain", "secure"])
def test_the_leader_reads_what_a_node_writes(client: IntroducedClient) -> None:
    line = encode_introduction(SECRET, "amqps", "b", is_resumed=True, client=client)
    found = parse_introduction(line + b"more", SECRET)
    assert found is not None
    assert (found.listener, found.node, found.is_resumed, found.client) == ("amqps", "b", True, client)
    assert found.size == len(line)


@pytest.mark.parametrize("word", [b"=", b"=!", b"=e30=", b"=bnVsbA==", b"=W10="])
def test_a_malformed_client_is_refused(word: bytes) -> None:
    line = encode_introduction(SECRET, "amqps", "b").rstrip() + b" " + word + b"\r\n"
    with pytest.raises(ProtocolViolation):
        parse_introduction(line, SECRET)


def test_tls_and_the_proxy_header_end_at_the_follower(nodes: SecureNodes) -> None:
    thread = nodes.talk()
    nodes.until(lambda: nodes.listener.clients and nodes.listener.clients[-1].received == b"hello")
    served = nodes.listener.clients[-1]
    assert served.peer == ("192.0.2.7", 40000)
    introduced = introduced_of(served.line)
    assert introduced is not None
    assert introduced.tls is not None
    assert introduced.tls.protocol == "tlsv1.3"
    assert hasattr(served.line, "getPeerCertificate"), "the line between the nodes has TLS"
    served.line.write(b"welcome")
    served.line.loseConnection()
    nodes.until(lambda: not thread.is_alive())
    assert nodes.answer == b"welcome"


def test_a_node_with_another_certificate_is_told_nothing(nodes: SecureNodes) -> None:
    nodes.fingerprint = "0" * 64
    thread = nodes.talk()
    until_s = time.monotonic() + 1.5
    nodes.until(lambda: time.monotonic() > until_s)
    assert nodes.counts.waiting == 1
    assert not nodes.leader.nodes
    nodes.fingerprint = nodes.leader_tls.fingerprint
    nodes.until(lambda: nodes.listener.clients and nodes.listener.clients[-1].received == b"hello")
    nodes.listener.clients[-1].line.loseConnection()
    nodes.until(lambda: not thread.is_alive())
