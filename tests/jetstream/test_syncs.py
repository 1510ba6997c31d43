"""A record is on the disks of two servers before it is acknowledged: serial appends never outnumber the syncs.

The kernel counts a page as written when it becomes dirty. Appends are small, so the next one makes a page dirty again
only after a sync. Without syncs the same appends show far fewer pages, so that the test would notice it.
"""

import resource
from pathlib import Path

from gateway.testing.cluster.queue_logs import OwnedLog
from tests.jetstream.nats_servers import NatsServer, NatsServers, running_servers
from tests.jetstream.places import JetStreamPlace

_APPENDS = 200


def pages_written(server: NatsServer) -> int:
    """Return how many pages a server has made dirty since its start."""
    assert server._process is not None
    lines = Path(f"/proc/{server._process.pid}/io").read_text().splitlines()
    fields = dict(line.split(": ") for line in lines)
    return int(fields["write_bytes"]) // resource.getpagesize()


def pages_of_appends(servers: NatsServers) -> list[int]:
    """Append one record after the other; return the pages that the servers have written meanwhile, the most first."""
    place = JetStreamPlace(servers)
    try:
        log = OwnedLog(place, place.new_queue())
        log.append(b"first")
        before = [pages_written(server) for server in servers.servers]
        for _ in range(_APPENDS):
            log.append(b"x" * 50)
        after = [pages_written(server) for server in servers.servers]
        return sorted((end - begin for begin, end in zip(before, after, strict=True)), reverse=True)
    finally:
        place.close()


def test_each_acknowledgement_follows_a_sync_on_two_servers(servers: NatsServers) -> None:
    assert pages_of_appends(servers)[1] >= _APPENDS


def test_servers_that_sync_from_time_to_time_show_fewer() -> None:
    with running_servers(jetstream="sync_interval: 2m") as servers:
        assert pages_of_appends(servers)[1] < _APPENDS
