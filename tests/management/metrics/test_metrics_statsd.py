"""Metrics for a StatsD server: values of gauges, increases of counters, packets of limited size."""

from gateway.management.metrics.family import counter, gauge
from gateway.management.metrics.scrapes import node_scrape
from gateway.management.metrics.statsd import LARGEST_PACKET, StatsdPusher
from tests.management.metrics.scraper import Scraper


def pushed(pusher: StatsdPusher, packets: list[bytes]) -> list[str]:
    packets.clear()
    for _ in pusher.pushing():
        pass
    return [line for packet in packets for line in packet.decode().splitlines()]


def test_gauges_are_sent_with_their_values_and_counters_with_their_increase() -> None:
    count, packets = [2], list[bytes]()
    sent, size = counter("sent_total", "Sent", "vhost"), gauge("size", "Size")
    pusher = StatsdPusher(lambda: [sent.metric([(("a|b",), count[0])]), None, size.single(1.5)], packets.append)
    assert pushed(pusher, packets) == ["sent_total:2|c|#vhost:a_b", "size:1.5|g"]
    count[0] = 5
    assert pushed(pusher, packets) == ["sent_total:3|c|#vhost:a_b", "size:1.5|g"]
    assert pushed(pusher, packets) == ["size:1.5|g"]


def test_the_metrics_of_a_node_are_sent_in_packets_of_limited_size() -> None:
    scraper, packets = Scraper(), list[bytes]()
    lines = pushed(StatsdPusher(lambda: node_scrape(scraper.sources), packets.append), packets)
    assert "rabbitmq_queues:0|g" in lines
    assert len(packets) > 1
    assert max(map(len, packets)) <= LARGEST_PACKET
    assert not [line for line in lines if "_bucket" in line]
