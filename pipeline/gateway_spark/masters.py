"""Whether a standalone master or a server of Spark Connect answers.

Spark itself tries for a minute or longer, and then prints the traceback of a program.
"""

import re
import socket
from contextlib import suppress
from typing import Final

from gateway_spark.choices import shown
from gateway_spark.errors import OptionError, Unreachable
from gateway_spark.remote import PORT, SCHEME, answers_grpc

TIMEOUT_S: Final = 5.0

#: The time for the handshakes of TLS and HTTP/2; a server that is busy needs milliseconds for them.
HANDSHAKE_S: Final = 10.0

_PLACE: Final = re.compile(r"(?P<host>[^\s:,]+|\[[^]]+]):(?P<port>\d{1,5})")


def require_master(master: str) -> None:
    """Check that one of the places of ``spark://host:port,host:port`` accepts connections, or that the server of
    ``sc://host:port`` speaks gRPC; other masters are not checked.

    :raises OptionError: for a place that is not a host and a port, or a parameter without a value.
    :raises Unreachable: if none accepts connections, or the server of ``sc://`` speaks something else.
    """
    scheme, _, places = master.partition("://")
    if scheme == "sc":
        _require_server(master)
    if scheme != "spark":
        return
    for place in places.split(","):
        found = _PLACE.fullmatch(place)
        if found is None:
            raise OptionError(f"option '--master' must be spark://host:port, not '{master}'")
        with suppress(OSError):
            socket.create_connection((found["host"].strip("[]"), int(found["port"])), TIMEOUT_S).close()
            return
    raise Unreachable(f"no Spark master answers at {master}")


def _require_server(master: str) -> None:
    url = shown(master)
    place = url.removeprefix(SCHEME).rstrip("/")
    found = _PLACE.fullmatch(place if re.search(r":\d+$", place) else f"{place}:{PORT}")
    if found is None:
        raise OptionError(f"option '--master' must be sc://host:port/;name=value, not '{url}'")
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), TIMEOUT_S).close()
    except (OSError, OverflowError):
        raise Unreachable(f"no Spark Connect server answers at {url}") from None
    if not answers_grpc(master, HANDSHAKE_S):
        raise Unreachable(
            f"what answers at {url} is no Spark Connect server, or only one side uses TLS: use_ssl=true turns it on, "
            "and a token needs it unless the host is localhost"
        )
