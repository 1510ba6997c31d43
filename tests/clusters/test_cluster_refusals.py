"""A node that cannot be a part of its cluster says why in one line, and ends with an exit code other than 0."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from tests.clusters.gateway_cluster import GatewayCluster, cluster_settings
from tests.jetstream.nats_servers import NatsServers, running_servers
from tests.ports import HOST, free_port
from tests.running import START_TIMEOUT_S, Gateway

#: A greeting of a nats-server as old as Debian's.
_OLD = b'INFO {"server_id":"x","version":"2.10.27","headers":true,"max_payload":1048576,"jetstream":true}\r\n'


def refusal(directory: Path, settings: tuple[str, ...]) -> str:
    """Start a node that must end by itself; return its last words."""
    return refusals(directory, settings)[0]


def refusals(directory: Path, *each: tuple[str, ...]) -> list[str]:
    """Start nodes side by side, which must end by themselves; return the last words of each."""
    gateways = [Gateway(directory / f"refused-{number}", *settings) for number, settings in enumerate(each)]
    try:
        for gateway in gateways:
            gateway._spawn(())
        return [_last_words(gateway) for gateway in gateways]
    finally:
        for gateway in gateways:
            gateway.end()


def _last_words(gateway: Gateway) -> str:
    assert gateway._wait(START_TIMEOUT_S) not in (0, None), gateway.log
    *others, line = gateway.log.splitlines()
    assert line.startswith("gateway: "), gateway.log
    assert all(" info " in other for other in others), gateway.log
    return line


@contextmanager
def greeting_server(greeting: bytes) -> Iterator[str]:
    """Listen, greet each client and answer each PING; yield the URL."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                Thread(target=answer, args=(client,), daemon=True).start()

        def answer(client: socket.socket) -> None:
            with client, suppress(OSError):
                client.sendall(greeting)
                while data := client.recv(4096):
                    if b"PING" in data and greeting:
                        client.sendall(b"PONG\r\n")

        Thread(target=serve, daemon=True).start()
        yield f"nats://{HOST}:{listener.getsockname()[1]}"


def test_servers_that_acknowledge_before_they_write(tmp_path: Path) -> None:
    with running_servers(jetstream="sync_interval: 2m") as servers:
        assert "sync_interval: always" in refusal(tmp_path, cluster_settings(servers, "a"))


def test_one_server_alone(tmp_path: Path) -> None:
    with running_servers(count=1) as servers:
        settings = cluster_settings(servers, "a")
        assert "1 NATS servers are known; a cluster has at least 3" in refusal(tmp_path / "a", settings)
        thrice = str([servers.monitoring[0]] * 3).replace("'", '"')
        line = refusal(tmp_path / "b", (*settings, f"cluster.monitoring={thrice}"))
        assert "at least 3 servers are needed" in line


def test_wrong_credentials(tmp_path: Path) -> None:
    authorization = 'authorization { user: broker, password: "right" }'
    with running_servers(settings=authorization) as servers:
        settings = (*cluster_settings(servers, "a"), "cluster.user=broker", "cluster.password=wrong")
        line = refusal(tmp_path, settings)
        assert "authorization" in line.lower()
        assert "wrong" not in line, "the password is in the log"


def test_another_clusters_name(shared_cluster: GatewayCluster, tmp_path: Path) -> None:
    shared_cluster.start()
    settings = (*cluster_settings(shared_cluster.servers, "d"), "cluster.name=other")
    assert "belong to the cluster 'gateway', not to 'other'" in refusal(tmp_path, settings)


def test_a_name_in_use(cluster: GatewayCluster, tmp_path: Path) -> None:
    line = refusal(tmp_path, cluster_settings(cluster.servers, "b"))
    assert "is named b, and is alive; each node needs its own name" in line
    assert all(node.child.poll() is None for node in cluster.nodes), "the first of the name was ended too"


def test_servers_that_do_not_answer(tmp_path: Path) -> None:
    closed = f"nats://{HOST}:{free_port()}"
    with greeting_server(b"") as silent, greeting_server(b"HTTP/1.1 400 Bad Request\r\n\r\n") as other:
        lines = refusals(tmp_path, *(settings_for(tmp_path, url) for url in (closed, silent, other)))
    for line, reason in zip(lines, ("refused by other side", "no login within 5 s", "unknown line"), strict=True):
        assert "cluster.servers" in line
        assert reason in line


def settings_for(directory: Path, url: str) -> tuple[str, ...]:
    """Return the settings of a node with one server."""
    return (*cluster_settings(NatsServers(directory), "a"), f'cluster.servers=["{url}"]')


def test_a_server_that_is_too_old(tmp_path: Path) -> None:
    with greeting_server(_OLD) as url:
        line = refusal(tmp_path, settings_for(tmp_path, url))
        assert "is nats-server 2.10.27; the oldest version for a cluster is 2.12.8" in line


def test_a_port_that_another_process_has(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server((HOST, port)):
        settings = (*cluster_settings(NatsServers(tmp_path), "a"), f"cluster.port={port}")
        assert f"cannot listen on {HOST}:{port}" in refusal(tmp_path, settings)
