"""Settings of STOMP and of its listeners."""

from typing import Annotated

from pydantic import Field, SecretStr

from gateway.config.kinds import ListenerPort, Live, Password, Size
from gateway.config.section import Section
from gateway.config.web_socket import WebSocketSection


class Stomp(Section):
    """STOMP 1.0, 1.1 and 1.2."""

    port: ListenerPort = 61613
    """Port of the listener without TLS."""

    proxy_protocol: bool = False
    """Whether a proxy sends a PROXY header with the client's address on each connection, with and without TLS."""

    default_user: str = ""
    """User of clients that connect without a login, if it may connect from there; ``""`` refuses such clients."""

    default_passcode: Password = SecretStr("")
    """Password of that user."""

    implicit_connect: bool = False
    """Whether a client may omit CONNECT; it is then the default user, and no CONNECTED is sent."""

    certificate_login: bool = True
    """Whether a client without a login may log in with its certificate, if ``tls.verify`` asks for one."""

    vhost: str = "/"
    """Virtual host of clients that do not send ``host``."""

    default_topic_exchange: str = "amq.topic"
    """Exchange of destinations below ``/topic``."""

    default_nack_requeue: bool = True
    """Whether a NACK without the header ``requeue`` requeues the message."""

    max_frame_size_unauthenticated: Live[Annotated[Size, Field(ge=1024, le=2**29)]] = 64 * 2**10
    """Maximum size of a frame from a client that has not logged in."""

    max_frame_size: Live[Annotated[Size, Field(ge=1024, le=2**29)]] = 17 * 2**20
    """Maximum size of a frame, headers and body together."""

    max_body_size: Live[Annotated[Size, Field(ge=0, le=2**29)]] = 16 * 2**20
    """Maximum size of a frame's body."""

    max_headers: Live[Annotated[int, Field(ge=10, le=10_000)]] = 100
    """Maximum number of headers in a frame."""

    max_headers_size: Live[Annotated[Size, Field(ge=1024, le=2**24)]] = 64 * 2**10
    """Maximum size of all headers of a frame together."""

    max_header_size: Live[Annotated[Size, Field(ge=256, le=2**24)]] = 64 * 2**10
    """Maximum size of one header, name and value together."""

    max_transactions: Live[Annotated[int, Field(ge=1, le=10_000)]] = 16
    """Maximum number of open transactions of a connection."""

    max_transaction_actions: Live[Annotated[int, Field(ge=1, le=10_000)]] = 1024
    """Maximum number of messages and acknowledgements in a transaction."""

    max_transaction_size: Live[Annotated[Size, Field(ge=1024, le=2**30)]] = 64 * 2**20
    """Maximum size of the messages in all open transactions of a connection."""

    login_timeout_s: Live[Annotated[int, Field(ge=1, le=3600)]] = 10
    """Time from opening a connection until its CONNECT is accepted, in seconds."""

    activemq: bool = False
    """Whether extensions of ActiveMQ are accepted: selectors, ``activemq.`` headers, ``>`` at the end of a topic."""


class Stomps(Section):
    """STOMP over TLS."""

    port: ListenerPort = None
    """Port of the TLS listener; the default is 61614 if ``tls.certificate`` is set."""


class WebStomp(WebSocketSection):
    """STOMP over WebSocket."""

    port: ListenerPort = 15674
    """Port of the WebSocket listener without TLS."""


class WebStomps(Section):
    """STOMP over WebSocket over TLS."""

    port: ListenerPort = None
    """Port of the WebSocket listener with TLS."""
