"""Whether a standalone master or a server of Spark Connect answers.

Spark itself tries for a minute or longer, and then prints the traceback of a program.
"""

import re
import socket
from contextlib import suppress
from typing import Final

from gateway_spark.choices import shown
from gateway_spark.errors import OptionError, Unreachable
from gateway_spark.remote import PORT, SCHEME

TIMEOUT_S: Final = 5.0

_PLACE: Final = re.compile(r"(?P<host>[^\s:,]+|\[[^]]+]):(?P<port>\d{1,5})")


def require_master(master: str) -> None:
    """Check that one of the places of ``spark://host:port,host:port``, or the server of ``sc://host:port``, accepts
    connections; other masters are not checked.

    :raises OptionError: for a place that is not a host and a port. :raises Unreachable: if none accepts connections.
    """
    scheme, _, places = master.partition("://")
    if scheme == "sc":
        _require_server(shown(master))
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


def _require_server(url: str) -> None:
    place = url.removeprefix(SCHEME).rstrip("/")
    found = _PLACE.fullmatch(place if re.search(r":\d+$", place) else f"{place}:{PORT}")
    if found is None:
        raise OptionError(f"option '--master' must be sc://host:port/;name=value, not '{url}'")
    try:
        socket.create_connection((found["host"].strip("[]"), int(found["port"])), TIMEOUT_S).close()
    except (OSError, OverflowError):
        raise Unreachable(f"no Spark Connect server answers at {url}") from None
