"""Start the service of the installed package as systemd would, and publish or consume a message.

Run as root with the package's Python, in a network without other brokers: ``try_service.py publish`` or ``consume``.
The command, the user and the directory are those of the unit. ``publish`` also rotates the log as logrotate does.
"""

import ctypes
import os
import pwd
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pika

UNIT = Path("/lib/systemd/system/gateway.service")
LOG = Path("/var/log/gateway/gateway.log")
LIMIT_S = 120.0
ADDRESS = pika.ConnectionParameters("127.0.0.1", stack_timeout=LIMIT_S)

_PR_SET_MDWE = 65
_REFUSE_EXEC_GAIN = 1
_SIOCSIFFLAGS = 0x8914
_IFF_UP_AND_RUNNING = 0x41


def setting(name: str) -> str:
    """Return a setting of the unit."""
    found = re.search(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert found is not None, f"{UNIT} has no {name}"
    return found[1]


def enable_loopback() -> None:
    """Enable the loopback interface of a new network namespace."""
    import fcntl
    import struct

    with socket.socket() as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP_AND_RUNNING))


def restricted() -> None:
    """Restrict the process that becomes the broker, as ``MemoryDenyWriteExecute`` does; older kernels cannot."""
    ctypes.CDLL(None).prctl(_PR_SET_MDWE, _REFUSE_EXEC_GAIN, 0, 0, 0)
    os.umask(0o027)


def started(manager: socket.socket, address: str) -> subprocess.Popen[bytes]:
    """Start the broker as the unit's user; return it when it has reported that it is ready."""
    user = pwd.getpwnam(setting("User"))
    broker = subprocess.Popen(
        shlex.split(setting("ExecStart")),
        cwd=setting("WorkingDirectory"),
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        env={"PATH": os.environ["PATH"], "NOTIFY_SOCKET": address, "HOME": user.pw_dir},
        preexec_fn=restricted,
    )
    wait_for(manager, "READY=1")
    return broker


def wait_for(manager: socket.socket, state: str) -> None:
    """Wait for a notification."""
    manager.settimeout(LIMIT_S)
    while state not in manager.recv(4096).decode().splitlines():
        pass


def publish() -> None:
    """Publish a persistent message, and let logrotate rotate the log."""
    with pika.BlockingConnection(ADDRESS) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        channel.basic_publish("", "kept", b"kept", pika.BasicProperties(delivery_mode=2))
    if shutil.which("logrotate"):
        subprocess.run(["logrotate", "--force", "/etc/logrotate.d/gateway"], check=True)


def consume() -> None:
    """Consume the message of an earlier run."""
    with pika.BlockingConnection(ADDRESS) as connection:
        body = connection.channel().basic_get("kept", auto_ack=True)[2]
    assert body == b"kept", f"received {body!r}"


ACTIONS: dict[str, Callable[[], None]] = {"publish": publish, "consume": consume}


def main(action: str) -> int:
    """Start, act and stop; return the exit code of the broker."""
    enable_loopback()
    address = "/run/gateway-notify"
    Path(address).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        os.chmod(address, 0o666)
        broker = started(manager, address)
        try:
            ACTIONS[action]()
            broker.terminate()
            wait_for(manager, "STOPPING=1")
            code = broker.wait(LIMIT_S)
        finally:
            broker.kill()
            broker.wait()
    assert code == 0, f"the broker ended with {code}"
    assert LOG.stat().st_size > 0, "nothing is logged after the rotation"
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
