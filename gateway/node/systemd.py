"""Notifications for systemd, for a service of type ``notify``: ready and stopping."""

import os
import socket
from contextlib import suppress


def tell_systemd(state: str) -> None:
    """Send a state to the service manager that started this process; do nothing without one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
        manager.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
