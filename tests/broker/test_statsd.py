"""A running broker sends its metrics to a StatsD server."""

import socket

from tests.running import HOST, Gateway


def test_a_statsd_server_gets_gauges_and_increases(gateway: Gateway) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((HOST, 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        gateway.start(f"statsd.host={HOST}", f"statsd.port={port}", "statsd.interval_s=1")
        lines: list[str] = []
        while not any(line.startswith("gateway_turn_seconds_count:") for line in lines):
            lines += server.recv(65536).decode().splitlines()
    assert "rabbitmq_queues:0|g" in lines
    assert gateway.stop() == 0


def test_a_host_that_is_no_address_is_refused(gateway: Gateway) -> None:
    assert gateway.run_to_end("statsd.host=statsd.example.com") == 65
    assert "statsd.host: must be an IPv4 or IPv6 address" in gateway.log
