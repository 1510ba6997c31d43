"""A follower of a cluster of three in the place of each gateway that the tests of this folder start."""

import atexit
import json
import re
import shutil
import signal
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Final

from tests.jetstream.nats_servers import NatsServers
from tests.ports import free_port
from tests.running import Gateway
from tests.waiting import wait_until

#: The other nodes of each cluster, one of which leads.
_OTHERS: Final = ("a", "b")

#: A port that the settings of a test name: only one node can have it.
_FIXED_PORT: Final = re.compile(r"(\w+\.port)=[1-9]\d*")

#: The time in which a node leads, in seconds.
_ELECTION_S: Final = 60.0


#: The NATS servers hold one cluster in each account.
_MOST_CLUSTERS: Final = 60
_PASSWORD: Final = "interop"
_numbers: Final = count()


@cache
def shared_servers() -> NatsServers:
    """Return the NATS servers of all clusters, which end with the process."""
    directory = Path(tempfile.mkdtemp(prefix="gateway-nats-"))
    accounts = (
        f"{_account(number)}: {{ jetstream: enabled, users: [{{ user: {_account(number)}, password: {_PASSWORD} }}] }}"
        for number in range(_MOST_CLUSTERS)
    )
    servers = NatsServers(directory, settings=f"accounts {{ {', '.join(accounts)} }}")

    def end() -> None:
        servers.stop()
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(end)
    servers.start()
    return servers


def _account(number: int) -> str:
    return f"cluster{number}"


def _joining(account: str) -> tuple[str, ...]:
    """Return the settings by which a node joins the cluster of an account."""
    servers = shared_servers()
    return (
        f"cluster.user={account}",
        f"cluster.password={_PASSWORD}",
        f"cluster.servers={json.dumps(servers.urls)}",
        f"cluster.monitoring={json.dumps(servers.monitoring)}",
        "cluster.host=127.0.0.1",
        f"cluster.port={free_port()}",
    )


class FollowerGateway(Gateway):
    """A node that does not lead, with the settings of a gateway that is alone; the others have them too.

    Owns the other two nodes of its cluster. They start before its first start, and end with it.
    """

    def __init__(self, directory: Path, *settings: str) -> None:
        account = _account(next(_numbers))
        super().__init__(directory, "node_name=c", *settings, *_joining(account))
        free = tuple(_FIXED_PORT.sub(r"\1=0", setting) for setting in settings)
        self._others = [Gateway(directory / name, *free, *_joining(account), f"node_name={name}") for name in _OTHERS]
        self._are_running = False

    def _spawn(self, settings: tuple[str, ...]) -> None:
        if not self._are_running:
            self._start_others(settings)
        super()._spawn(settings)

    def _start_others(self, settings: tuple[str, ...]) -> None:
        self._are_running = True
        for node in self._others:
            node.options, node.environment, node.from_scratch = self.options, self.environment, self.from_scratch
            node._spawn(settings)
        for node in self._others:
            node.wait_until_ready()
        wait_until(
            lambda: any(" leading epoch=" in node.log for node in self._others),
            lambda: "\n".join(node.log for node in self._others),
            timeout_s=_ELECTION_S,
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop all nodes; return the exit code of the follower."""
        code = super().stop(number)
        self._end_others()
        return code

    def end(self) -> None:
        """Ensure that no process is left."""
        super().end()
        self._end_others()

    def _end_others(self) -> None:
        self._are_running = False
        for node in self._others:
            node.end()
