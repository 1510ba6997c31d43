"""The prepared process: imports the broker, then forks one for each request (see ``prepared_process.py``)."""

import gc
import json
import os
import pkgutil
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import Final

from argon2 import PasswordHasher

import gateway.bridges
import gateway.cli.main
import gateway.net
import gateway.node
import gateway.node.app
import gateway.worker_process
from gateway.access import passwords
from gateway.config.catalogue import settings_by_key
from gateway.plugins.registry import BUILT_IN_MODULES

#: More bytes than any request has, with an environment in it.
_REQUEST_SIZE: Final = 1 << 20
_STREAMS: Final = 3

#: The packages whose modules a start imports, and what those import that needs a reactor.
_PACKAGES: Final = (gateway.node, gateway.bridges, gateway.net, gateway.worker_process)
_LATE_IMPORTS: Final = ("gateway_lmdb", "paho.mqtt.client", "pika", "stomp", "twisted.plugin", "twisted.python.systemd")


class _NoReactor:
    """Refuses to import Twisted's reactor: a broker installs its own, after the fork."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name == "twisted.internet.reactor":
            raise ImportError(name)
        return None


def import_broker() -> None:
    """Import all modules of a broker but the few that need a reactor, and freeze their objects for the forks."""
    refusing = _NoReactor()
    sys.meta_path.insert(0, refusing)  # type: ignore[arg-type]  # a finder needs no more than this method
    modules = [
        name for package in _PACKAGES for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in (*modules, *BUILT_IN_MODULES.values(), *_LATE_IMPORTS):
        with suppress(ImportError):
            import_module(name)
    sys.meta_path.remove(refusing)  # type: ignore[arg-type]
    assert "twisted.internet.reactor" not in sys.modules
    settings_by_key()
    gc.collect()
    gc.freeze()


def lower_the_cost_of_passwords() -> None:
    """Hash new passwords in less than a millisecond: with the usual cost they take a third of a start.

    A hash contains its cost, so logins with these users are cheap, too, and those of unknown users have that cost.
    """
    passwords._HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1, hash_len=32)  # type: ignore[misc]
    passwords._UNKNOWN_USER_HASH = passwords._HASHER.hash("unknown")  # type: ignore[misc]


def serve(requests: socket.socket) -> list[str]:
    """Fork for each request; in the fork, return the arguments of the command. It ends with the test process."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable, _, _ = select.select([requests, woken], [], [])
        if woken in readable:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            _report_ends(requests)
        if requests not in readable:
            continue
        request, streams, _, _ = socket.recv_fds(requests, _REQUEST_SIZE, _STREAMS)
        if not request:
            sys.exit(0)
        pid = os.fork()
        if not pid:
            _become_child(streams, (requests.detach(), woken, wake))
            arguments: list[str]
            arguments, environment = json.loads(request)
            os.environ.clear()
            os.environ.update(environment)
            return arguments
        for descriptor in streams:
            os.close(descriptor)
        requests.send(json.dumps(["started", pid]).encode())


def _report_ends(requests: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            requests.send(json.dumps(["ended", pid, os.waitstatus_to_exitcode(status)]).encode())


def _become_child(streams: list[int], inherited: tuple[int, ...]) -> None:
    """Undo what ``serve`` set up, and take over the standard streams."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in (*streams, *inherited):
        os.close(descriptor)


if __name__ == "__main__":
    import_broker()
    lower_the_cost_of_passwords()
    sys.argv[1:] = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(gateway.cli.main.main())
