"""Requests of all protocols wait for a permission that another server is asked for, and keep their order."""

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands
from twisted.internet.task import Clock

from gateway.access import Access
from gateway.kernel.broker.directory import Directory
from gateway.plugins.registry import PluginView
from gateway_auth.asked.authorizer import AskedAuthorizer
from gateway_auth.asked.questions import Question, ResourceKind, Verdict
from gateway_auth.asked.verdicts import Verdicts
from tests.protocols.amqp.dialogue import Gateway as AmqpGateway
from tests.protocols.amqp.frames import publish
from tests.protocols.mqtt.dialogue import Gateway as MqttGateway
from tests.protocols.mqtt.packets import Will
from tests.protocols.stomp.dialogue import Gateway as StompGateway


class Asked:
    """A gateway whose permissions are asked for; a test answers the questions. The virtual host is open to all."""

    questions: list[tuple[Question, Callable[[Verdict], None]]]

    def _access_by(self, view: PluginView, directory: Directory) -> Access:
        self.questions = []
        verdicts = Verdicts(self._ask, Clock(), 60, lambda: None)
        return Access(view.authenticators(directory), [AskedAuthorizer(verdicts, has_topics=True)])

    def _ask(self, question: Question, answer: Callable[[Verdict], None]) -> None:
        if question.resource is ResourceKind.VHOST:
            answer(True)
        else:
            self.questions.append((question, answer))

    def answer_all(self, *denied: str) -> list[str]:
        """Answer questions until there are no more; return them. ``denied`` are refused."""
        answered = []
        while self.questions:
            question, answer = self.questions.pop(0)
            line = f"{question.permission} {question.resource.value} {question.routing_key or question.name}"
            answered.append(line)
            answer(line not in denied)
        return answered


class Amqp(Asked, AmqpGateway):
    pass


class Mqtt(Asked, MqttGateway):
    pass


class Stomp(Asked, StompGateway):
    pass


def declared(peer: Any) -> list[str]:
    return [frame.split("(")[0] for frame in peer.receive()]


def test_an_amqp_request_waits_with_all_that_follows_it() -> None:
    gateway = Amqp()
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="one"), commands.Queue.Declare(queue="two"))
    assert declared(peer) == []
    assert gateway.answer_all() == ["configure queue one", "configure queue two"]
    assert declared(peer) == ["Queue.DeclareOk", "Queue.DeclareOk"]


def test_a_name_that_the_broker_chooses_is_asked_for_once() -> None:
    gateway = Amqp()
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue=""))
    (asked,) = gateway.answer_all()
    assert asked.startswith("configure queue amq.gen-")
    assert declared(peer) == ["Queue.DeclareOk"]


def test_an_amqp_publish_waits_and_is_published_once() -> None:
    gateway = Amqp()
    gateway.vhost.declare_queue("orders")
    peer = gateway.connect()
    for body in (b"one", b"two"):
        peer.send(publish("", "orders", body))
    assert gateway.ready("orders") == 0
    assert gateway.answer_all() == ["write exchange amq.default"]
    peer.receive()
    assert gateway.ready("orders") == 2


def test_a_publish_whose_frames_come_one_by_one_waits_too() -> None:
    gateway = Amqp()
    gateway.vhost.declare_queue("orders")
    peer = gateway.connect()
    for octet in publish("", "orders", b"some words", pieces=4).on(1):
        peer.send(bytes((octet,)))
    assert gateway.answer_all() == ["write exchange amq.default"]
    peer.receive()
    assert gateway.ready("orders") == 1


def test_a_denied_amqp_publish_closes_the_channel() -> None:
    gateway = Amqp()
    peer = gateway.connect()
    peer.send(publish("", "orders"))
    gateway.answer_all("write exchange amq.default")
    (closed,) = peer.receive()
    assert "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'guest'" in closed


def test_another_amqp_connection_does_not_wait() -> None:
    gateway = Amqp()
    first, second = gateway.connect(), gateway.connect()
    second.send(commands.Queue.Declare(queue="two"))
    gateway.answer_all()
    assert declared(second) == ["Queue.DeclareOk"]
    first.send(commands.Queue.Declare(queue="one"))
    second.send(commands.Queue.Declare(queue="two"))
    assert declared(second) == ["Queue.DeclareOk"]
    assert declared(first) == []


def test_a_connection_that_is_lost_while_it_waits_leaves_nothing() -> None:
    gateway = Amqp()
    peer = gateway.connect()
    peer.send(commands.Queue.Declare(queue="one"))
    peer.lose()
    gateway.answer_all()
    assert "one" not in gateway.vhost.queue_by_name


def test_an_mqtt_publish_waits_and_is_acknowledged_once() -> None:
    gateway = Mqtt()
    client = gateway.client("sensor")
    assert client.publish("t/1", qos=1, id=7) == []
    assert gateway.answer_all() == ["write exchange amq.topic", "write topic t.1"]
    assert client.receive() == ["PUBACK #7 NO_MATCHING_SUBSCRIBERS"]


def test_an_mqtt_subscription_waits_for_all_its_permissions() -> None:
    gateway = Mqtt()
    client = gateway.client("app")
    assert client.subscribe("t/+", 1) == []
    asked = gateway.answer_all()
    assert asked[-1] == "read topic t.*"
    assert client.receive() == ["SUBACK #1 1"]


def test_a_denied_mqtt_topic_is_refused() -> None:
    gateway = Mqtt()
    client = gateway.client("app")
    client.subscribe("secret", 1)
    gateway.answer_all("read topic secret")
    (answer,) = client.receive()
    assert answer == "SUBACK #1 87"


def test_a_will_is_published_once_its_permission_is_known() -> None:
    gateway = Mqtt()
    watcher = gateway.client("watcher")
    watcher.subscribe("gone", 0)
    gateway.answer_all()
    watcher.receive()
    gateway.client("sensor", will=Will("gone", b"bye")).lose()
    assert watcher.receive() == []
    assert gateway.answer_all() == ["write exchange amq.topic", "write topic gone"]
    assert watcher.receive() == ["PUBLISH gone 'bye'"]


@pytest.mark.parametrize("verb", ["SEND", "SUBSCRIBE"])
def test_a_stomp_frame_waits_for_its_permissions(verb: str) -> None:
    gateway = Stomp()
    client = gateway.client()
    assert client.command(verb, id="0", destination="/topic/a", receipt="r") == []
    assert gateway.answer_all()
    (receipt,) = client.receive_frames()
    assert receipt.headers == {"receipt-id": "r"}
