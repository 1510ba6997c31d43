"""The data of a single node are migrated into an empty cluster, with kills at any moment, and nothing is lost."""

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.clusters.gateway_cluster import GatewayCluster, cluster_settings
from tests.clusters.links import AmqpLink
from tests.clusters.test_takeover_contents import Contents, require_contents
from tests.interop.broker import PROJECT
from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.running import Gateway
from tests.waiting import wait_until

#: Beside one of each kind, so that a migration takes long enough to be killed.
_BULK: Final = 8_000
_BULK_BYTES: Final = 2048
_LIMIT_S: Final = 90

#: The program whose migration is killed before its end, however fast the machine is.
UNFINISHED: Final = "tests.clusters.unfinished_migration"


class Migrations:
    """Runs ``gateway migrate`` with the servers of a cluster."""

    def __init__(self, servers: NatsServers, *sources: Path, settings: Sequence[str] = ()) -> None:
        words = (word for each in (*cluster_settings(servers, "migrating"), *settings) for word in ("--set", each))
        self.options = ["migrate", *map(str, sources), *words]

    def begin(self, program: str = "gateway") -> "subprocess.Popen[str]":
        """Start it."""
        command = [sys.executable, "-m", program, *self.options]
        return subprocess.Popen(command, cwd=PROJECT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self) -> tuple[int, str]:
        """Run it to its end; return the exit code and what it printed."""
        child = self.begin()
        try:
            output, _ = child.communicate(timeout=_LIMIT_S)
        finally:
            child.kill()
        return child.returncode, output

    def kill_after(self, seconds: float) -> str:
        """Run it for a while after it has begun to write, and kill it before its end; return what it printed."""
        child = self.begin(UNFINISHED)
        assert child.stdout is not None
        output = ""
        for line in child.stdout:
            output += line
            if " has about " in line:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(seconds)
                break
        child.kill()
        return output + child.communicate()[0]


@pytest.fixture
def directory() -> Iterator[Path]:
    """Yield a directory with a short name, for sockets."""
    found = Path(tempfile.mkdtemp(prefix="gateway-migration-"))
    yield found
    shutil.rmtree(found, ignore_errors=True)


def fill(link: AmqpLink) -> None:
    """Publish many messages to a queue, and wait until they are durable."""
    from pamqp import commands

    link.declare("bulk")
    link.call(commands.Confirm.Select())
    for begin in range(0, _BULK, 500):
        for number in range(begin, begin + 500):
            link.publish("bulk", b"%06d" % number * (_BULK_BYTES // 6))
        confirmed = begin
        while confirmed < begin + 500:
            found = link.next_method()
            assert isinstance(found, commands.Basic.Ack)
            confirmed = found.delivery_tag if found.multiple else confirmed + 1


@pytest.mark.timeout(400)
def test_all_data_come_into_the_cluster_whatever_is_killed(directory: Path) -> None:
    single = Gateway(directory / "single").start()
    cluster = None
    random = Random(7)
    try:
        contents = Contents(single, "moved")  # type: ignore[arg-type]  # a node as others
        contents.declare()
        contents.fill()
        with AmqpLink(single.addresses["amqp"]) as link:
            fill(link)
        before = contents.definitions(), contents.depths(), contents.stream()
        assert single.stop() == 0
        with running_servers() as servers:
            migrations = Migrations(servers, single.data)
            whole = time.monotonic()
            outputs = [migrations.kill_after(random.uniform(0.0, 0.4)) for _ in range(5)]
            code, output = migrations.run()
            print(f"{time.monotonic() - whole:.1f} s: {outputs}\n{output}")
            assert code == 0, output
            assert "an earlier attempt is continued" in output
            assert migrations.run()[1].splitlines()[-1] == "the migration was complete already"
            cluster = GatewayCluster(servers, directory).start()
            contents.node = cluster.leader()
            assert (contents.definitions(), contents.depths(), contents.stream()) == before
            require_contents(contents)
            with AmqpLink(cluster.follower().addresses["amqp"]) as link:
                assert link.declare("bulk") == _BULK
            code, output = migrations.run()
            assert (code != 0, "a gateway leads the cluster" in output) == (True, True), output
            for node in cluster.nodes:
                node.stop()
            code, output = migrations.run()
            assert (code != 0, "the cluster is not empty" in output) == (True, True), output
    finally:
        single.end()
        if cluster is not None:
            cluster.end()


@pytest.mark.timeout(200)
def test_no_node_leads_a_cluster_whose_migration_has_not_ended(directory: Path) -> None:
    single = Gateway(directory / "single").start()
    node = None
    try:
        with AmqpLink(single.addresses["amqp"]) as link:
            fill(link)
        assert single.stop() == 0
        with running_servers() as servers:
            migrations = Migrations(servers, single.data)
            child = migrations.begin(UNFINISHED)
            assert " has about " in child.communicate(timeout=_LIMIT_S)[0]
            assert child.returncode == -signal.SIGKILL
            node = Gateway(directory / "node", *cluster_settings(servers, "a")).start()
            wait_until(lambda: "a migration into this cluster has not ended" in node.log, lambda: node.log)
            assert node.stop() == 0
            assert migrations.run()[0] == 0
            node.start()
            with AmqpLink(node.addresses["amqp"], 30) as link:
                assert link.declare("bulk") == _BULK
    finally:
        single.end()
        if node is not None:
            node.end()
