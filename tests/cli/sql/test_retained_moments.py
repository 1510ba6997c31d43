"""The retained messages as of a moment: those that the broker had at that moment."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway.columnar.encoding.schema import MESSAGES
from gateway.sql.retained import state_at
from tests.cli.sql.recorded_api import RecordedApi, select
from tests.management_client import get, put
from tests.paho_loop import stop_loop
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.waiting import wait_until

#: The archive waits for its worker, which has a low priority.
pytestmark = pytest.mark.timeout(300)

TIMEOUT_S = 30.0

#: Publishes after a moment are at least so much later: times of messages are those of turns, in milliseconds.
APART = timedelta(milliseconds=100)

#: The expiry of a topic: two looks on a busy machine are faster.
BRIEF_S = 10

State = dict[str, bytes]
"""The body of each topic."""

#: The body in the archive of a topic with a rule of redaction, of which the broker retains the body as it is.
REDACTED = b"***"

REDACTING = 'archive.redact=["amq.topic house.secret $"]'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A broker that archives what MQTT publishes."""
    with stream_broker(tmp_path_factory.mktemp("retained"), "archive.segment_age_s=1", REDACTING) as broker:
        archived = {"pattern": "^amq[.]topic$", "definition": {"archive": True}, "apply-to": "exchanges"}
        put(broker.gateway, "policies/%2F/keep", archived)
        yield broker


class Device:
    """An MQTT client whose will is retained. Each publish returns when the broker has acknowledged it."""

    def __init__(self, broker: StreamBroker) -> None:
        self._client = Client(CallbackAPIVersion.VERSION2, "device", protocol=MQTTProtocolVersion.MQTTv5)
        self._client.will_set("house/will", b"gone", qos=1, retain=True)
        self._client.connect(*broker.gateway.addresses["mqtt"])
        self._client.loop_start()

    def publish(self, topic: str, body: bytes, *, retain: bool = True, qos: int = 1, expiry_s: int = 0) -> None:
        properties = Properties(PacketTypes.PUBLISH)
        if expiry_s:
            properties.MessageExpiryInterval = expiry_s
        self._client.publish(topic, body, qos, retain, properties).wait_for_publish(TIMEOUT_S)

    def vanish(self) -> None:
        """Close the connection without DISCONNECT, so that the will is published."""
        stop_loop(self._client)
        connection = self._client.socket()
        assert connection is not None
        connection.close()


def retained(broker: StreamBroker) -> State:
    """Return what the broker retains now, as a new subscriber gets it."""
    found: State = {}

    def keep(client: Client, userdata: object, message: MQTTMessage) -> None:
        if message.retain:
            found[message.topic] = message.payload

    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.on_message = keep
    client.connect(*broker.gateway.addresses["mqtt"])
    client.subscribe("house/#")
    client.loop_start()
    try:
        wait_until(lambda: found.keys() == set(topics(broker)), "not all come", timeout_s=TIMEOUT_S)
    finally:
        client.disconnect()
        stop_loop(client)
    return found


def topics(broker: StreamBroker) -> list[str]:
    """Return the topics of which the broker retains a message now."""
    return [each["topic"] for each in get(broker.gateway, "mqtt/retained/%2F")]


def as_archived(state: State) -> State:
    """Return what the broker retains as its archive has it: with the redacted body of a secret."""
    return {topic: REDACTED if topic == "house/secret" else body for topic, body in state.items()}


def declare_expiry(broker: StreamBroker) -> None:
    """Declare a queue for all topics whose messages expire late: dead letters with the topics, for later states."""
    arguments = {"x-message-ttl": 500, "x-dead-letter-exchange": "amq.topic"}
    with broker.channel() as channel:
        channel.queue_declare("expiring", durable=True, arguments=arguments)
        channel.queue_bind("expiring", "amq.topic", "house.#")


def test_the_state_of_a_moment_is_what_the_broker_had(broker: StreamBroker) -> None:
    device, seen = Device(broker), list[tuple[datetime, State]]()

    def look() -> None:
        now = datetime.now(UTC)
        seen.append((now, retained(broker)))
        wait_until(lambda: datetime.now(UTC) > now + APART, "the clock stands still", timeout_s=TIMEOUT_S)

    declare_expiry(broker)
    look()
    device.publish("house/a", b"1")
    device.publish("house/secret", b"1234")
    device.publish("house/b", b"22", qos=2)
    look()
    device.publish("house/a", b"333")
    device.publish("house/a", b"not retained", retain=False)
    device.publish("house/brief", b"4444", expiry_s=BRIEF_S)
    look()
    device.publish("house/b", b"")
    device.publish("house/secret", b"")
    look()
    wait_until(lambda: "house/brief" not in topics(broker), "it does not expire", timeout_s=TIMEOUT_S)
    look()
    device.vanish()
    wait_until(lambda: "house/will" in topics(broker), "the will is not published", timeout_s=TIMEOUT_S)
    look()
    wait_until(lambda: not get(broker.gateway, "archives")[0]["messages"], "it is not in files", timeout_s=200)
    assert [len(state) for _, state in seen] == [0, 3, 4, 2, 1, 2]
    assert seen[2][1] == {"house/a": b"333", "house/b": b"22", "house/brief": b"4444", "house/secret": b"1234"}
    for moment, state in seen:
        found = select(
            RecordedApi(broker.gateway),
            f"select mqtt.topic, body from retained.\"amq.topic\"('{moment.isoformat()}')",
        )
        assert dict(found) == as_archived(state), moment
    dead = select(
        RecordedApi(broker.gateway),
        'select distinct mqtt.topic, body from archive."amq.topic" where x_death is not null and mqtt.retain',
    )
    # they came after the topics had got another body, or none
    assert {("house/a", b"1"), ("house/b", b"22"), ("house/secret", REDACTED)} <= set(dead)


def test_files_of_later_times_are_not_opened(broker: StreamBroker) -> None:
    api = RecordedApi(broker.gateway)
    assert select(api, 'select count(*) from retained."amq.topic"(now() - interval 1 day)') == [(0,)]
    assert api.count("part") == 0
    assert select(api, "show tables") == [
        ('archive."amq.topic"', "archive of exchange"),
        ("audit", "changes by operators"),
    ]


# Against a model

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
PUBLISHES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from([b"", b"x", b"y"]),
        st.sampled_from([True, True, True, False]),
        st.none() | st.integers(0, 5),
        st.integers(0, 2),
        st.sampled_from([False, False, True]),
    ),
    max_size=20,
)


@given(publishes=PUBLISHES, moment=st.integers(0, 30))
def test_the_rules_of_mqtt_apply(publishes: list[tuple[str, bytes, bool, int | None, int, bool]], moment: int) -> None:
    """Time is in seconds; each publish is some seconds after the previous one, or at the same time.

    A dead letter of the topic has the flag, too.
    """
    rows: list[dict[str, Any]] = []
    state: dict[str, tuple[bytes, int | None]] = {}
    now = 0
    for offset, (topic, body, is_retained, expiry_s, pause, is_dead) in enumerate(publishes):
        now += pause
        rows.append(
            {
                "timestamp": BEGIN + timedelta(seconds=now),
                "offset": offset,
                "routing_key": topic,
                "mqtt": {"topic": topic, "qos": 1, "retain": is_retained},
                "expiration": None if expiry_s is None else str(expiry_s * 1000),
                "body": body,
                "x_death": [{"queue": "q", "reason": "expired"}] if is_dead else None,
            }
        )
        if is_retained and not is_dead and now <= moment:
            state[topic] = body, None if expiry_s is None else now + expiry_s
    expected = {topic: body for topic, (body, end) in state.items() if body and (end is None or end > moment)}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("archived", pa.Table.from_pylist(rows, schema=MESSAGES))
        connection.execute(state_at("retained_at", "archived"))
        at = (BEGIN + timedelta(seconds=moment)).isoformat()
        assert dict(connection.execute(f"SELECT routing_key, body FROM retained_at('{at}')").fetchall()) == expected
