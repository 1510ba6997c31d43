"""Settings of MQTT and of its listeners."""

from typing import Annotated, Final

from pydantic import Field

from gateway.config.kinds import ListenerPort, Live, Size
from gateway.config.section import Section
from gateway.config.web_socket import WebSocketSection

#: The largest possible packet: 268,435,455 bytes after a fixed header of five (MQTT 5.0, 1.5.5).
LARGEST_PACKET: Final = 2**28 + 4
FOR_EVER_S: Final = 2**32 - 1

Count = Annotated[int, Field(ge=0, le=10**9)]
"""A count; 0 is none or no limit, depending on the setting."""


class Mqtt(Section):
    """MQTT 3.1, 3.1.1 and 5.0."""

    port: ListenerPort = 1883
    """Port of the listener without TLS."""

    proxy_protocol: bool = False
    """Whether a proxy sends a PROXY header with the client's address on each connection, with and without TLS."""

    anonymous_user: str = "guest"
    """User of clients that connect without a user name, if it may connect from there; ``""`` refuses such clients."""

    anonymous_from_network: bool = False
    """Whether clients without a user name may connect from other machines. Behind a proxy every client seems local."""

    anonymous_from_pages: bool = False
    """Whether web pages of any origin may connect without a user name."""

    vhost: str = "/"
    """Virtual host of clients that do not name one."""

    exchange: str = "amq.topic"
    """Topic exchange, in every virtual host, that receives publishes and is bound to subscriptions."""

    prefetch: Live[Annotated[int, Field(ge=1, le=65535)]] = 10
    """Maximum unacknowledged QoS 1 and 2 messages to a client that sends no Receive Maximum."""

    max_packet_size_unauthenticated: Live[Annotated[Size, Field(ge=1024, le=LARGEST_PACKET)]] = 64 * 2**10
    """Maximum size of a packet from a client that has not logged in."""

    max_packet_size: Live[Annotated[Size, Field(ge=1024, le=LARGEST_PACKET)]] = 16 * 2**20
    """Maximum size of a packet."""

    max_session_expiry_s: Live[Annotated[int, Field(ge=0, le=FOR_EVER_S)]] = 86400
    """Maximum session expiry after the connection closes, in seconds; 4294967295 is for ever."""

    keep_alive_max_s: Live[Annotated[int, Field(ge=0, le=65535)]] = 0
    """Maximum keep alive interval of an MQTT 5.0 client, in seconds; 0 is no maximum."""

    max_topic_levels: Live[Annotated[int, Field(ge=1, le=255)]] = 201
    """Maximum number of levels in a topic or a filter. Mosquitto has the same limit."""

    topic_alias_max: Live[Annotated[int, Field(ge=0, le=65535)]] = 16
    """Maximum number of topic aliases in each direction of a connection; 0 disables them."""

    receive_maximum: Live[Annotated[int, Field(ge=1, le=65535)]] = 65535
    """Maximum unacknowledged QoS 1 and 2 publishes of a client."""

    login_timeout_s: Live[Annotated[int, Field(ge=1, le=3600)]] = 10
    """Time from opening a connection until its CONNECT is accepted, in seconds."""

    retained_max_messages: Live[Count] = 100_000
    """Maximum number of retained messages in a virtual host; 0 disables retained messages."""

    retained_max_bytes: Live[Annotated[Size, Field(ge=0, le=10**12)]] = 256 * 2**20
    """Memory for the retained messages of a virtual host."""

    max_sessions_per_user: Live[Annotated[int, Field(ge=1, le=10**9)]] = 50_000
    """Maximum number of sessions of one user in a virtual host."""

    session_max_messages: Live[Count] = 0
    """Maximum number of messages waiting for one session; the oldest are dropped. 0 is no limit."""

    session_max_bytes: Live[Annotated[Size, Field(ge=0, le=10**12)]] = 0
    """Maximum bytes of payload waiting for one session; the oldest messages are dropped. 0 is no limit."""

    qos0_max_messages: Live[Count] = 10_000
    """Maximum number of QoS 0 messages waiting for a slow client; the oldest are dropped. 0 is no limit."""

    qos0_max_bytes: Live[Annotated[Size, Field(ge=0, le=10**12)]] = 16 * 2**20
    """Maximum bytes of QoS 0 payload waiting for a slow client; the oldest messages are dropped. 0 is no limit."""

    max_subscriptions: Live[Annotated[int, Field(ge=1, le=10**9)]] = 10_000
    """Maximum number of subscriptions of a session."""

    max_filters: Live[Annotated[int, Field(ge=1, le=10**6)]] = 2_000
    """Maximum number of filters in a SUBSCRIBE or UNSUBSCRIBE."""

    max_inflight: Live[Annotated[int, Field(ge=1, le=65535)]] = 8192
    """Maximum unacknowledged QoS 1 and 2 messages to a client, even if its Receive Maximum is higher."""

    disconnect_on_unauthorized: Live[bool] = True
    """Whether an unauthorised request closes the connection; otherwise it gets an error code where MQTT has one."""

    sys_interval_s: Annotated[int, Field(ge=0, le=86400)] = 10
    """Interval at which the topics below ``$SYS/broker`` are published, in seconds; 0 disables them."""

    failed_login_delay_s: Annotated[int, Field(ge=0, le=60)] = 3
    """Delay of the answer to a failed login, in seconds."""


class Mqtts(Section):
    """MQTT over TLS."""

    port: ListenerPort = None
    """Port of the TLS listener; the default is 8883 if ``tls.certificate`` is set."""


class WebMqtt(WebSocketSection):
    """MQTT over WebSocket."""

    port: ListenerPort = 15675
    """Port of the WebSocket listener without TLS."""


class WebMqtts(Section):
    """MQTT over WebSocket over TLS."""

    port: ListenerPort = None
    """Port of the WebSocket listener with TLS."""
