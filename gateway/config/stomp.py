"""The settings of STOMP and of its listeners."""

from typing import Annotated

from pydantic import Field, SecretStr

from gateway.config.kinds import Hosts, ListenerPort, Origins, Password, Size, UrlPath
from gateway.config.section import Section


class Stomp(Section):
    """STOMP 1.0, 1.1 and 1.2."""

    port: ListenerPort = 61613
    """Where plain connections are taken."""

    proxy_protocol: bool = False
    """Whether connections, with and without TLS, come by way of a proxy that says in a PROXY header whose they are."""

    default_user: str = ""
    """The user that a client without a login acts as, from where that user may connect; ``""`` turns it away."""

    default_passcode: Password = SecretStr("")
    """The password of that user."""

    implicit_connect: bool = False
    """Whether a client may leave CONNECT out; it is then the default user, and no CONNECTED comes."""

    certificate_login: bool = True
    """Whether a client without a login is who its certificate says, where ``tls.verify`` asks for one."""

    vhost: str = "/"
    """The virtual host of clients that name none in ``host``."""

    default_topic_exchange: str = "amq.topic"
    """The exchange that destinations below ``/topic`` are routed by."""

    default_nack_requeue: bool = True
    """Whether a NACK without the header ``requeue`` puts a message back into its queue."""

    max_frame_size_unauthenticated: Annotated[Size, Field(ge=1024, le=2**29)] = 64 * 2**10
    """The largest frame accepted from a client that has not logged in."""

    max_frame_size: Annotated[Size, Field(ge=1024, le=2**29)] = 17 * 2**20
    """The largest frame accepted, its headers and its body together."""

    max_body_size: Annotated[Size, Field(ge=0, le=2**29)] = 16 * 2**20
    """The largest body of a frame accepted."""

    max_headers: Annotated[int, Field(ge=10, le=10_000)] = 100
    """How many headers a frame may have."""

    max_headers_size: Annotated[Size, Field(ge=1024, le=2**24)] = 64 * 2**10
    """How much space all headers of a frame may take."""

    max_header_size: Annotated[Size, Field(ge=256, le=2**24)] = 64 * 2**10
    """How long one header of a frame may be, its name and its value together."""

    max_transactions: Annotated[int, Field(ge=1, le=10_000)] = 16
    """How many transactions a connection may have open at a time."""

    max_transaction_actions: Annotated[int, Field(ge=1, le=10_000)] = 1024
    """How many messages and acknowledgements a transaction may hold."""

    max_transaction_size: Annotated[Size, Field(ge=1024, le=2**30)] = 64 * 2**20
    """How much space the messages in all open transactions of a connection may take."""

    login_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """How long a new connection may take, in seconds, until its CONNECT was accepted."""

    activemq: bool = False
    """Whether habits of ActiveMQ's clients are accepted: selectors, ``activemq.`` headers, ``>`` at a topic's end."""


class Stomps(Section):
    """STOMP over TLS."""

    port: ListenerPort = None
    """Where TLS connections are taken; 61614 when it is not set but ``tls.certificate`` is."""


class WebStomp(Section):
    """STOMP over WebSocket."""

    port: ListenerPort = 15674
    """Where plain WebSocket connections are taken."""

    path: UrlPath = "/ws"
    """The path of the WebSocket, with and without TLS."""

    allow_origins: Origins = Field(default_factory=list)
    """Pages of other hosts that may open a WebSocket, such as ``https://console.example.com``; ``*`` is any."""

    allow_hosts: Hosts = Field(default_factory=list)
    """Further names, without a port, by which a browser may call this machine; ``*`` is any. See docs/management.md."""

    proxy_protocol: bool = False
    """Whether connections, with and without TLS, come by way of a proxy that says in a PROXY header whose they are."""


class WebStomps(Section):
    """STOMP over WebSocket over TLS."""

    port: ListenerPort = None
    """Where WebSocket connections over TLS are taken."""
