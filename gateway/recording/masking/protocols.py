"""The grammar of each listener's clients."""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.recording.masking import amqp, http, mqtt, stomp, websocket
from gateway.recording.parsing import Grammar, StreamParser

_PLAIN: Final[Mapping[str, Callable[[bool], Grammar]]] = {
    "amqp": lambda hides_bodies: amqp.client_grammar(hides_bodies=hides_bodies),
    "mqtt": lambda hides_bodies: mqtt.client_grammar(hides_bodies=hides_bodies),
    "stomp": lambda hides_bodies: stomp.client_grammar(hides_bodies=hides_bodies),
    "management": lambda hides_bodies: http.client_grammar(),
}


def plain_name(listener: str) -> str:
    """Return the name of the listener without TLS: ``web_mqtt`` for ``web_mqtts``, ``management`` for its own."""
    return listener.removesuffix("_tls") if listener.endswith("_tls") else listener.removesuffix("s")


def masking_parser(listener: str, *, hides_bodies: bool) -> StreamParser:
    """Return a parser that masks the bytes of a client of a listener."""
    name = plain_name(listener)
    protocol = name.removeprefix("web_")
    grammar = _PLAIN[protocol](hides_bodies)
    parser = StreamParser(grammar)
    return parser if protocol == name else StreamParser(websocket.client_grammar(parser))
