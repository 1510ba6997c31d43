"""A session with very many subscriptions is deleted in slices, also after its connection is gone."""

from gateway.kernel.events import Event
from tests.clocks import TickingClock
from tests.protocols.mqtt.dialogue import Gateway

FILTERS = 400


def test_a_large_clean_session_is_deleted_after_its_connection_and_by_its_user() -> None:
    clock = TickingClock(is_ticking=False)
    gateway = Gateway(clock=clock)
    deleted: list[Event] = []
    gateway.broker.events.subscribe(lambda event: deleted.append(event) if event.name == "queue.deleted" else None)
    client = gateway.client("sensor")
    for first in range(0, FILTERS, 100):
        filters = [(f"t/{number}", 1) for number in range(first, first + 100)]
        client.request(client.write.subscribe(*filters, id=first + 1))
    clock.is_ticking = True
    client.lose()
    for _ in range(FILTERS):
        gateway.settle()
        clock.advance(0.01)
    clock.is_ticking = False
    assert [event.user for event in deleted] == ["guest"]
    assert not gateway.vhost.queue_by_name
    assert gateway.client("sensor").welcome.line == "CONNACK"
