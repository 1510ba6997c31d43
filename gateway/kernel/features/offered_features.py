"""The queue features that the plugins of one virtual host offer, and their objects in its queues."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.features.hosted_feature import FAULT, HostedFeature
from gateway.kernel.features.plugin_feature import QueueFeatureType, is_built_in, settings_of
from gateway.kernel.interception.publish_chain import InterceptionContext
from gateway.kernel.plugin_times import PartTimes
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.settings.offered_settings import NO_OFFERED_SETTINGS

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Value
    from gateway.kernel.queueing.queue_like import QueueLike


class OfferedFeatures:
    """The feature ``types`` of one virtual host, and their ``settings``. A setting belongs to one type.

    ``times`` has the times of the calls of all objects of each type.
    """

    def __init__(self, context: InterceptionContext) -> None:
        self.types: tuple[QueueFeatureType, ...] = ()
        self.settings = NO_OFFERED_SETTINGS
        self.times = PartTimes()
        self._context = context

    def use(self, types: Sequence[QueueFeatureType]) -> None:
        """Offer these types from now on; existing queues keep their objects until ``features_for`` is called."""
        self.types = tuple(types)
        self.times = PartTimes(types)
        self.settings = settings_of(types, self._contain)

    def features_for(self, queue: Queue) -> Iterator[HostedFeature]:
        """Yield the features that the settings of a queue require.

        A feature whose type and values are unchanged stays in use. One that cannot be made is a fault; the queue works
        without it.
        """
        for feature_type in self.types:
            values = self._values_of(queue, feature_type)
            if not values:
                continue
            earlier = _predecessor(queue, feature_type)
            if earlier is not None and earlier.type is feature_type and earlier.values == values:
                yield earlier
                continue
            try:
                yield HostedFeature(feature_type, queue, values, self._context, self.times.of(feature_type), earlier)
            except BaseException as error:  # plugin code
                self._contain(feature_type, error, queue.name)

    def inert_reason(self, queue: "QueueLike") -> str:
        """Return the settings of a queue that have no effect, because no plugin offers them, with the reasons."""
        if not queue.settings or queue.is_stream:
            return ""
        made = {name for feature in queue.features if isinstance(feature, HostedFeature) for name in feature.values}
        return "; ".join(self._faults_of(queue, made))

    def checking(self, types: Sequence[QueueFeatureType], queues: "Iterable[QueueLike]") -> Iterator[None]:
        """Return the steps that check whether other types accept the settings that are in use.

        :raises PreconditionFailed: for the first queue that has a feature whose new version refuses its setting.
        """
        new = settings_of(types, self._contain)
        for queue in queues:
            for feature in queue.features:
                if not isinstance(feature, HostedFeature):
                    continue
                for name, value in feature.values.items():
                    if (fault := new.fault_of(name, value)) is not None:
                        raise PreconditionFailed(f"{queue.entity}: the value of '{name}' {fault}")
            yield

    def _values_of(self, queue: Queue, feature_type: QueueFeatureType) -> "dict[str, Value]":
        """Return the valid settings of a queue for a feature."""
        settings = queue.settings
        values = {name: settings.value(name) for name in feature_type.settings if name in settings}
        return {name: value for name, value in values.items() if self.settings.fault_of(name, value) is None}

    def _faults_of(self, queue: "QueueLike", made: set[str]) -> Iterator[str]:
        for name, setting in queue.settings.items():
            is_argument = setting.source == "argument"
            if name in made or is_built_in(name) or (is_argument and f"x-{name}" not in queue.arguments):
                continue
            shown = f"argument 'x-{name}'" if is_argument else f"key '{name}' of {setting.source}"
            if name not in self.settings:
                yield f"{shown}: no enabled plugin offers it"
            else:
                fault = self.settings.fault_of(name, setting.value)
                yield f"{shown}: {fault or 'its feature could not be made'}"

    def _contain(self, feature_type: QueueFeatureType, error: BaseException, queue: str = "") -> None:
        context = self._context
        name = getattr(feature_type.make, "__qualname__", type(feature_type.make).__qualname__)
        context.faults.contain_in_part(FAULT, error, context.vhost_name, feature_type, queue, name)


def _predecessor(queue: Queue, feature_type: QueueFeatureType) -> HostedFeature | None:
    """Return the feature in use that has a setting of this type."""
    for feature in queue.features:
        if isinstance(feature, HostedFeature) and not feature.type.settings.keys().isdisjoint(feature_type.settings):
            return feature
    return None
