"""Exit with 0 if the gateway in this container serves AMQP clients, else with 1 and the reason.

It begins a connection as a client does. While the broker starts, or a node has no leader, the answer is
``connection.close`` instead of ``connection.start``. The port is the first argument, or that of
``GATEWAY__AMQP__PORT``.
"""

import os
import socket
import sys

LIMIT_S = 4.0
HEADER = b"AMQP\x00\x00\x09\x01"

#: The type of the frame, its channel, and the class and method after its size.
METHOD_ON_CHANNEL_0 = b"\x01\x00\x00"
CONNECTION_START = b"\x00\x0a\x00\x0a"


def fault(port: int) -> str:
    """Return why the broker does not serve clients; ``""`` if it does."""
    try:
        with socket.create_connection(("127.0.0.1", port), LIMIT_S) as client:
            client.settimeout(LIMIT_S)
            client.sendall(HEADER)
            answer = b""
            while len(answer) < 11:
                data = client.recv(11 - len(answer))
                if not data:
                    return "the broker closed the connection"
                answer += data
    except OSError as error:
        return str(error)
    serves = answer[:3] == METHOD_ON_CHANNEL_0 and answer[7:] == CONNECTION_START
    return "" if serves else "the broker does not serve clients yet"


if __name__ == "__main__":
    sys.exit(fault(int(sys.argv[1] if sys.argv[1:] else os.environ.get("GATEWAY__AMQP__PORT", "5672"))) or 0)
