"""``python -m gateway.cli.local_cluster``: runs three NATS servers and three gateways until Ctrl-C."""

import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

import click

from gateway.cli.exits import DATA_ERROR
from gateway.cli.local_cluster.nodes import NAMES, GatewayNodes
from gateway.cli.local_cluster.ports import HOST
from gateway.cli.local_cluster.processes import ChildProcess
from gateway.cli.local_cluster.servers import NatsServers
from gateway.kernel.errors import GatewayError
from gateway.node.command_path import command_path

_POLL_S: Final = 0.2


class _Stopped(Exception):
    """The user ends the cluster."""


class LocalCluster:
    """The processes of one cluster of ``cells`` cells. Owns them."""

    def __init__(self, directory: Path, cells: int) -> None:
        taken: set[int] = set()
        self.servers = NatsServers(directory, taken)
        self.nodes = GatewayNodes(directory, self.servers, taken, cells)
        self._ended: set[str] = set()

    def run(self) -> None:
        """Start everything, print how to use it, and report each process that ends. Returns by an exception alone."""
        _say("starting three NATS servers")
        self.servers.start()
        _say("starting three gateways")
        leader = self.nodes.start()
        _say(self._description(leader))
        while True:
            time.sleep(_POLL_S)
            self._report_ended()

    def stop(self) -> None:
        """End all processes, the gateways first."""
        for processes in (list(self.nodes.processes.values()), self.servers.processes):
            for process in processes:
                process.ask_to_stop()
            for process in processes:
                process.wait()

    @property
    def _processes(self) -> list[ChildProcess]:
        return [*self.servers.processes, *self.nodes.processes.values()]

    def _report_ended(self) -> None:
        for process in self._processes:
            if not process.is_running and process.name not in self._ended:
                self._ended.add(process.name)
                _say(f"{process.name} (pid {process.pid}) has ended; to start it again, in another terminal:")
                _say("  " + " ".join(process.command))

    def _description(self, leader: str) -> str:
        others = [name for name in NAMES if name != leader]
        urls = {name: self.nodes.amqp_url(name) for name in NAMES}
        lines = ["", "The cluster is running."]
        for process, ports in zip(self.servers.processes, self.servers.ports, strict=True):
            lines.append(f"  {process.name}   pid {process.pid:<8} nats://{HOST}:{ports['client']}")
        for name in NAMES:
            addresses = ", ".join(f"{listener} {port}" for listener, port in self.nodes.ports[name].items())
            role = "leads" if name == leader else "follows"
            lines.append(f"  node {name}   pid {self.nodes.processes[name].pid:<8} {role}; {HOST}: {addresses}")
        management = self.nodes.ports[others[0]]["management"]
        lines += [
            "Try it (amqp-tools, or any AMQP 0-9-1 client): publish on one node, kill the leader, get on another.",
            f"  amqp-declare-queue -d -u {urls[others[0]]} -q first",
            f"  amqp-publish -p -u {urls[others[0]]} -r first -b 'Hello World!'",
            f"  kill -9 {self.nodes.processes[leader].pid}",
            f"  amqp-get -u {urls[others[1]]} -q first        # some 6 s later",
            f"  {command_path('gatewayctl')} --url http://{HOST}:{management} cluster_status",
            "Ctrl-C ends all of them; the data stay.",
        ]
        return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("data/cluster"),
    show_default=True,
    help="Directory of the data, the settings and the logs.",
)
@click.option(
    "--cells",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Number of cells; with several, each virtual host is in one, and several nodes lead.",
)
def main(data: Path, cells: int) -> None:
    """Run a cluster of three nodes on this machine until Ctrl-C."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _stop)
    cluster: LocalCluster | None = None
    try:
        cluster = LocalCluster(data.absolute(), cells)
        cluster.run()
    except _Stopped:
        _say("stopping")
    except GatewayError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(DATA_ERROR)
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        if cluster is not None:
            cluster.stop()


if __name__ == "__main__":
    main()
