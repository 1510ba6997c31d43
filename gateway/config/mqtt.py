"""The settings of MQTT and of its listeners."""

from typing import Annotated, Final

from pydantic import Field

from gateway.config.kinds import Hosts, ListenerPort, Origins, Size, UrlPath
from gateway.config.section import Section

#: The largest packet there can be: 268,435,455 bytes behind a fixed header of five (MQTT 5.0, 1.5.5).
LARGEST_PACKET: Final = 2**28 + 4
FOR_EVER_S: Final = 2**32 - 1

Count = Annotated[int, Field(ge=0, le=10**9)]
"""A number of things, 0 where there may be none of them, or no limit."""


class Mqtt(Section):
    """MQTT 3.1, 3.1.1 and 5.0."""

    port: ListenerPort = 1883
    """Where plain connections are taken."""

    proxy_protocol: bool = False
    """Whether connections, with and without TLS, come by way of a proxy that says in a PROXY header whose they are."""

    anonymous_user: str = "guest"
    """The user that a client without a name acts as, from where that user may connect; ``""`` turns it away."""

    anonymous_from_network: bool = False
    """Whether a client without a name may come from other machines. Behind a proxy each client seems to be local."""

    anonymous_from_pages: bool = False
    """Whether a client without a name may be a web page in a browser, of whatever origin."""

    vhost: str = "/"
    """The virtual host of clients that name none."""

    exchange: str = "amq.topic"
    """The topic exchange, of any virtual host, that publishes go to and subscriptions are bound to."""

    prefetch: Annotated[int, Field(ge=1, le=65535)] = 10
    """How many messages of QoS 1 and 2 a client has unacknowledged at most, unless it states a Receive Maximum."""

    max_packet_size_unauthenticated: Annotated[Size, Field(ge=1024, le=LARGEST_PACKET)] = 64 * 2**10
    """The largest packet accepted from a client that has not logged in."""

    max_packet_size: Annotated[Size, Field(ge=1024, le=LARGEST_PACKET)] = 16 * 2**20
    """The largest packet accepted."""

    max_session_expiry_s: Annotated[int, Field(ge=0, le=FOR_EVER_S)] = 86400
    """How long a session may outlive its connection, in seconds; 4294967295 is for ever."""

    keep_alive_max_s: Annotated[int, Field(ge=0, le=65535)] = 0
    """The longest keep alive interval a client of MQTT 5.0 may have, in seconds; 0 lets it have its own."""

    max_topic_levels: Annotated[int, Field(ge=1, le=255)] = 201
    """How many levels a topic or a filter may have. Mosquitto accepts as many."""

    topic_alias_max: Annotated[int, Field(ge=0, le=65535)] = 16
    """How many topic aliases are used each way on one connection; 0 is none."""

    receive_maximum: Annotated[int, Field(ge=1, le=65535)] = 65535
    """How many publishes of QoS 1 and 2 a client may have unacknowledged."""

    login_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """How long a new connection may take, in seconds, until its CONNECT was accepted."""

    retained_max_messages: Count = 100_000
    """How many retained messages a virtual host keeps; 0 keeps none."""

    retained_max_bytes: Annotated[Size, Field(ge=0, le=10**12)] = 256 * 2**20
    """How much memory the retained messages of a virtual host may take."""

    max_sessions_per_user: Annotated[int, Field(ge=1, le=10**9)] = 50_000
    """How many sessions one user may have in a virtual host."""

    session_max_messages: Count = 0
    """How many messages may wait for one session; the oldest make room. 0 is no limit."""

    session_max_bytes: Annotated[Size, Field(ge=0, le=10**12)] = 0
    """How many bytes of payload may wait for one session; the oldest messages make room. 0 is no limit."""

    qos0_max_messages: Count = 10_000
    """How many messages of QoS 0 may wait for a client that does not keep up; the oldest make room. 0 is no limit."""

    qos0_max_bytes: Annotated[Size, Field(ge=0, le=10**12)] = 16 * 2**20
    """How many bytes of payload of QoS 0 may wait for such a client; the oldest make room. 0 is no limit."""

    max_subscriptions: Annotated[int, Field(ge=1, le=10**9)] = 10_000
    """How many subscriptions a session may have."""

    max_filters: Annotated[int, Field(ge=1, le=10**6)] = 2_000
    """How many filters a SUBSCRIBE or UNSUBSCRIBE may name."""

    max_inflight: Annotated[int, Field(ge=1, le=65535)] = 8192
    """How many messages of QoS 1 and 2 any client has unacknowledged at most, whatever its Receive Maximum."""

    disconnect_on_unauthorized: bool = True
    """Whether a client that does what it may not is disconnected, or only told so where MQTT has a way."""

    sys_interval_s: Annotated[int, Field(ge=0, le=86400)] = 10
    """How often the topics below ``$SYS/broker`` are published, in seconds; 0 is never."""

    failed_login_delay_s: Annotated[int, Field(ge=0, le=60)] = 3
    """How long a client whose login failed waits for the answer, in seconds."""


class Mqtts(Section):
    """MQTT over TLS."""

    port: ListenerPort = None
    """Where TLS connections are taken; 8883 when it is not set but ``tls.certificate`` is."""


class WebMqtt(Section):
    """MQTT over WebSocket."""

    port: ListenerPort = 15675
    """Where plain WebSocket connections are taken."""

    path: UrlPath = "/ws"
    """The path of the WebSocket, with and without TLS."""

    allow_origins: Origins = Field(default_factory=list)
    """Pages of other hosts that may open a WebSocket, such as ``https://console.example.com``; ``*`` is any."""

    allow_hosts: Hosts = Field(default_factory=list)
    """Further names, without a port, by which a browser may call this machine; ``*`` is any. See docs/management.md."""

    proxy_protocol: bool = False
    """Whether connections, with and without TLS, come by way of a proxy that says in a PROXY header whose they are."""


class WebMqtts(Section):
    """MQTT over WebSocket over TLS."""

    port: ListenerPort = None
    """Where WebSocket connections over TLS are taken."""
