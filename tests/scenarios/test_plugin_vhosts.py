"""Plugins publish messages to one queue of a virtual host, and close the connections of a user."""

from gateway.api import Properties, TracedVhost
from tests.scenarios.all_protocols_broker import AllProtocolsBroker, all_of, fetched, key_of, own_queue, queue


def scope_of(gateway: AllProtocolsBroker) -> TracedVhost:
    return gateway.broker.plugins_in_use.scope_of(gateway.vhost)


def test_a_message_to_one_queue_has_the_address_that_the_plugin_gives() -> None:
    gateway = AllProtocolsBroker()
    peer = gateway.peer()
    peer.send(*queue("q"), *queue("other", "#")).receive()
    assert scope_of(gateway).publish_to_queue("q", "amq.topic", "a.b", Properties(headers={"n": 1}), b"answer")
    received = fetched(peer, "q")
    assert (received.body, key_of(received)) == (b"answer", "a.b")
    assert all_of(peer, "other") == []


def test_a_message_to_a_queue_that_does_not_exist_is_dropped() -> None:
    assert not scope_of(AllProtocolsBroker()).publish_to_queue("q", "amq.topic", "a", Properties(), b"")


def test_a_client_of_mqtt_gets_an_answer_on_a_topic_that_it_subscribed_to_alone() -> None:
    gateway = AllProtocolsBroker()
    asking, listening = gateway.client("asking"), gateway.client("listening")
    for client in (asking, listening):
        client.subscribe("$CONTROL/x/response", 1)
    vhost = scope_of(gateway)
    assert vhost.publish_to_queue(own_queue("asking"), "amq.topic", "$CONTROL.x.response", Properties(), b"yes")
    assert vhost.publish_to_queue(own_queue("asking"), "amq.topic", "$CONTROL.y.response", Properties(), b"no")
    gateway.settle()
    assert [line.split()[:2] for line in asking.receive()] == [["PUBLISH", "$CONTROL/x/response"]]
    assert listening.receive() == []


def test_the_connections_of_a_user_to_the_virtual_host_are_closed_with_the_reason() -> None:
    gateway = AllProtocolsBroker()
    peer, client = gateway.peer(), gateway.client("sensor")
    scope_of(gateway).close_connections("stranger", "not you")
    gateway.settle()
    assert (peer.receive(), client.receive()) == ([], [])
    scope_of(gateway).close_connections("guest", "go away")
    gateway.settle()
    assert "go away" in str(peer.receive())
    assert client.receive()[-1] == "closed"
