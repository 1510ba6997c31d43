"""The contract of ``gateway.api.QueueFeature`` as a check for any queue feature.

The feature runs in a queue of a broker in memory, with unusual messages. Its own tests cover what it decides; this
check covers that it fails neither for a message nor for a value of its settings, and that it modifies no message.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.kernel.features.plugin_feature import QueueFeatureType
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.testing.broker import MemoryBroker, Recipient
from gateway.testing.unusual_messages import content_of, described, unusual_messages

#: Values of every type of an argument; a check has to judge all of them.
VALUES: Final[tuple[Value, ...]] = (
    None,
    True,
    0,
    -1,
    2**63 - 1,
    1.5,
    float("nan"),
    "",
    "text",
    "ü" * 300,
    b"\xff",
    [],
    [1, "a", None],
    {},
    {"a": [1]},
    datetime(2023, 1, 1, tzinfo=UTC),
)

_QUEUE: Final = "checked"
_OUTCOMES: Final = tuple(DeliveryOutcome)
_HOUR_S: Final = 3600.0


def check_queue_feature(
    feature_type: QueueFeatureType, settings: Mapping[str, Value], messages: Sequence[Message] = ()
) -> None:
    """Check a queue feature with unusual messages, and with ``messages`` of its own kind.

    :param settings: valid values of its settings, by policy key.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    _check_settings(feature_type, settings)
    check = _Check(feature_type, settings, [*unusual_messages(), *messages])
    check.messages_wait_and_are_settled()
    check.messages_are_consumed_at_once()
    check.a_new_version_replaces_the_feature()
    check.the_queue_is_deleted()
    check.no_message_was_modified()


def _check_settings(feature_type: QueueFeatureType, settings: Mapping[str, Value]) -> None:
    if unknown := sorted(settings.keys() - feature_type.settings.keys()):
        raise AssertionError(f"The feature has no setting {unknown[0]!r}; it has {', '.join(feature_type.settings)}.")
    for name, setting in feature_type.settings.items():
        for value in (*VALUES, *([settings[name]] if name in settings else [])):
            try:
                fault = setting.check(value)
            except Exception as error:  # foreign code: any exception is a finding
                raise AssertionError(f"The check of {name!r} raised {error!r} for {value!r}.") from error
            if fault is not None and (not isinstance(fault, str) or not fault):
                raise AssertionError(f"The check of {name!r} returned {fault!r} for {value!r}: no text, and not None.")
            if value is settings.get(name) and fault is not None:
                raise AssertionError(f"The check of {name!r} refuses {value!r}: {fault}.")


class _Check:
    """The promises, one method each; all concern one queue."""

    def __init__(
        self, feature_type: QueueFeatureType, settings: Mapping[str, Value], messages: Sequence[Message]
    ) -> None:
        self._type = feature_type
        self._messages = messages
        self._contents = [content_of(message) for message in messages]
        self._broker = MemoryBroker()
        self._faults: list[Event] = []
        self._broker.kernel.events.subscribe(self._note)
        self._use(feature_type)
        arguments = {f"x-{name}": value for name, value in settings.items()}
        queue = self._broker.vhost.declare_queue(_QUEUE, is_durable=True, arguments=arguments)
        assert isinstance(queue, Queue)
        self._queue = queue
        self._require_no_fault("for a new queue")

    def messages_wait_and_are_settled(self) -> None:
        for number, message in enumerate(self._messages):
            outcome = _OUTCOMES[number % len(_OUTCOMES)]
            self._offer(message)
            recipient = Recipient()
            received = recipient.get(self._queue)
            if received is not None:
                recipient.settle(received.tag, outcome)
            self._require_no_fault(f"for {described(message)}, {outcome.name.lower()}")
        self._broker.advance(_HOUR_S)
        self._require_no_fault("an hour later")

    def messages_are_consumed_at_once(self) -> None:
        recipient = Recipient()
        recipient.consume(self._queue, settles=False)
        for message in self._messages:
            self._offer(message)
            self._require_no_fault(f"for {described(message)}, which a consumer takes at once")
        recipient.leave()

    def a_new_version_replaces_the_feature(self) -> None:
        self._use(QueueFeatureType(self._type.settings, self._type.make))
        self._require_no_fault("when a new object replaces it")

    def the_queue_is_deleted(self) -> None:
        self._broker.vhost.delete_queue(self._queue)
        self._broker.advance(_HOUR_S)
        self._require_no_fault("when its queue is deleted")

    def no_message_was_modified(self) -> None:
        for message, content in zip(self._messages, self._contents, strict=True):
            if content_of(message) != content:
                raise AssertionError(f"The feature modified {described(message)}.")

    def _use(self, feature_type: QueueFeatureType) -> None:
        self._broker.vhost.policy_applier.use_features([feature_type])

    def _offer(self, message: Message) -> None:
        self._queue.offer(message)
        self._broker.end_turn()

    def _note(self, event: Event) -> None:
        if event.name == FAULT:
            self._faults.append(event)

    def _require_no_fault(self, when: str) -> None:
        if self._faults:
            details = self._faults[0].details
            raise AssertionError(f"The feature failed {when}: {details['error']} ({details['place']}).")
