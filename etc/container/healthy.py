"""Exit with 0 if the gateway in this container serves AMQP clients, else with 1 and the reason.

It begins a connection as a client does. While the broker starts, or a node has no leader, the answer is
``connection.close`` instead of ``connection.start``. The address is that of the settings in the environment and in the
file of ``GATEWAY_CONFIG``; it reads these two itself, because loading all settings takes half a second of CPU.
"""

import os
import socket
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIMIT_S = 4.0
HEADER = b"AMQP\x00\x00\x09\x01"

#: The type of the frame and its channel, which its size follows; then the class and method.
METHOD_ON_CHANNEL_0 = b"\x01\x00\x00"
CONNECTION_START = b"\x00\x0a\x00\x0a"
FRAME_HEADER_BYTES = 7

#: Where a client of the same machine reaches a listener on every interface.
LOOPBACK = {"*": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


#: Around a text in TOML, and spaces around a value.
_QUOTES = "\"' "


def address(environment: Mapping[str, str], file: Mapping[str, Any]) -> tuple[str, str]:
    """Return the host and the port of AMQP; the environment has precedence over the settings of the file."""
    bind = environment.get("GATEWAY__BIND", file.get("bind", "*"))
    port = environment.get("GATEWAY__AMQP__PORT", file.get("amqp", {}).get("port", 5672))
    host = bind.strip(_QUOTES)
    return LOOPBACK.get(host, host), str(port).strip(_QUOTES)


def fault(host: str, port: str) -> str:
    """Return why the broker does not serve clients; ``""`` if it does."""
    if not port.isdecimal() or port == "0":
        return f"this check needs a fixed port of AMQP, and amqp.port is {port}"
    try:
        with socket.create_connection((host, int(port)), LIMIT_S) as client:
            client.settimeout(LIMIT_S)
            client.sendall(HEADER)
            header = received(client, FRAME_HEADER_BYTES)
            # The whole frame with its end: the system resets a connection that is closed with unread bytes.
            frame = received(client, int.from_bytes(header[3:], "big") + 1)
    except OSError as error:
        return str(error)
    serves = header[:3] == METHOD_ON_CHANNEL_0 and frame[:4] == CONNECTION_START
    return "" if serves else "the broker does not serve clients yet"


def received(client: socket.socket, size: int) -> bytes:
    """Return that many bytes. :raises ConnectionError: if the broker sends fewer."""
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        if not more:
            raise ConnectionError("the broker closed the connection")
        data += more
    return data


def main() -> str:
    """Return the fault of the broker of this container."""
    file = Path(os.environ.get("GATEWAY_CONFIG") or "/etc/gateway/gateway.toml")
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    except (OSError, ValueError) as error:
        return f"{file}: {error}"
    return fault(*address(os.environ, settings))


if __name__ == "__main__":
    sys.exit(main() or 0)
