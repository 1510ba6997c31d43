"""Settings that the WebSocket listeners of all protocols have."""

from pydantic import Field

from gateway.config.kinds import Hosts, ListenerPort, Origins, UrlPath
from gateway.config.section import Section


class WebSocketSection(Section):
    """A WebSocket listener without TLS. Most of its settings hold for the one with TLS, too."""

    port: ListenerPort
    """Port of the WebSocket listener without TLS."""

    path: UrlPath = "/ws"
    """URL path of the WebSocket, with and without TLS."""

    allow_origins: Origins = Field(default_factory=list)
    """Origins of web pages that may open a WebSocket, such as ``https://console.example.com``; ``*`` is any."""

    allow_hosts: Hosts = Field(default_factory=list)
    """Further host names, without ports, that browsers may use for this host; ``*`` is any. See docs/management.md."""

    proxy_protocol: bool = False
    """Whether a proxy sends a PROXY header with the client's address on each connection, with and without TLS."""
