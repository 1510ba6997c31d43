"""Limits of virtual hosts and users for AMQP clients, with RabbitMQ's texts."""

from dataclasses import replace

import pytest
from pamqp import commands

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import asked, start_ok


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def limit_guest(gateway: Gateway, **limits: int) -> None:
    """Set limits of the user; ``max_channels`` is ``max-channels``."""
    directory = gateway.broker.directory
    guest = directory.user_by_name["guest"]
    directory.put_user(replace(guest, limits={name.replace("_", "-"): value for name, value in limits.items()}))


def test_a_queue_above_the_limit_is_refused(gateway: Gateway) -> None:
    gateway.broker.limit_vhost("/", {"max-queues": 1})
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="lq1"), commands.Queue.Declare(queue="lq2"))
    assert peer.receive() == [
        "Queue.DeclareOk(queue='lq1', message_count=0, consumer_count=0)",
        "Channel.Close 406 PRECONDITION_FAILED - cannot declare queue 'lq2': "
        "queue limit in vhost '/' (1) is reached (50,10)",
    ]


def test_declaring_an_existing_queue_does_not_count(gateway: Gateway) -> None:
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    gateway.broker.limit_vhost("/", {"max-queues": 1})
    peer.send(commands.Queue.Declare(queue="q"))
    assert len(peer.receive()) == 2


def test_a_limit_of_0_refuses_all_connections(gateway: Gateway) -> None:
    gateway.broker.limit_vhost("/", {"max-connections": 0})
    assert refusal(gateway) == (
        "Connection.Close 530 NOT_ALLOWED - access to vhost '/' refused for user 'guest': "
        "connection limit (0) is reached (10,40)"
    )


def test_a_connection_above_the_limit_of_a_user_is_refused(gateway: Gateway) -> None:
    limit_guest(gateway, max_connections=1)
    gateway.connect()
    assert refusal(gateway) == (
        "Connection.Close 530 NOT_ALLOWED - connection refused for user 'guest': "
        "user connection limit (1) is reached (10,40)"
    )


def test_a_closed_connection_does_not_count(gateway: Gateway) -> None:
    limit_guest(gateway, max_connections=1)
    first = gateway.connect()
    first.send(commands.Connection.Close(200, "", 0, 0))
    first.receive()
    gateway.broker.connections.remove(first)
    gateway.connect()


def test_a_channel_above_the_limit_of_a_user_is_refused(gateway: Gateway) -> None:
    limit_guest(gateway, max_channels=2)
    peer = gateway.connect()
    peer.send(commands.Channel.Open(), channel=2)
    peer.receive()
    peer.send(commands.Channel.Open(), channel=3)
    assert peer.receive() == [
        "Connection.Close 530 NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum "
        "allowed user limit of (2) (0,0)"
    ]


def test_queues_bindings_and_consumers_above_the_limit_of_a_user_are_refused(gateway: Gateway) -> None:
    limit_guest(gateway, max_queues=1, max_bindings=1, max_consumers=1)
    peer = gateway.connect()
    peer.send(
        commands.Queue.Declare(queue="q"),
        commands.Queue.Bind(queue="q", exchange="amq.topic", routing_key="a"),
        commands.Basic.Consume(queue="q", consumer_tag="one"),
    )
    peer.receive()
    too_many = [
        (commands.Queue.Declare(queue="r"), "cannot declare queue 'r': queue limit"),
        (commands.Queue.Bind(queue="q", exchange="amq.topic", routing_key="b"), "cannot bind: binding limit"),
        (commands.Basic.Consume(queue="q", consumer_tag="two"), "cannot consume: consumer limit"),
    ]
    for number, (command, refusal) in enumerate(too_many, 2):
        peer.send(commands.Channel.Open(), channel=number)
        peer.receive()
        peer.send(command, channel=number)
        assert f"PRECONDITION_FAILED - {refusal} of user 'guest' (1) is reached" in peer.receive()[-1]


def test_a_negative_limit_is_no_limit(gateway: Gateway) -> None:
    gateway.broker.limit_vhost("/", {"max-queues": -1, "max-connections": -1})
    limit_guest(gateway, max_channels=-1, max_connections=-1)
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="q"))
    assert len(peer.receive()) == 1


def test_limits_survive_a_restart(gateway: Gateway) -> None:
    gateway.broker.limit_vhost("/", {"max-queues": 1})
    gateway.settle()
    assert Gateway(store=gateway.store.reopened()).vhost.record.limits == {"max-queues": 1}


def refusal(gateway: Gateway) -> str:
    """Return the error that a refused client receives."""
    peer = Peer(gateway)
    peer.send(PROTOCOL_HEADER, start_ok("\0guest\0guest"), commands.Connection.TuneOk(2047, 131_072, 60))
    peer.send(asked(commands.Connection.Open, virtual_host="/"))
    return peer.receive()[-1]
