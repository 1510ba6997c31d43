"""RabbitMQ's metrics of the whole cluster: whether virtual hosts run, and the exchanges with their bindings.

A query selects them as groups; their names have no ``detailed``.
"""

from collections.abc import Collection
from typing import Final

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.context import ApiContext
from gateway.management.metrics.family import Reading, gauge
from gateway.management.metrics.objects import ObjectGroup, Objects

_EXCHANGE: Final = ("vhost", "exchange", "type")


def _vhosts(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for vhost in vhosts:
        yield {"vhost": vhost.name}, 1


def _exchanges(context: ApiContext, vhosts: Collection[VirtualHost]) -> Objects:
    for vhost in vhosts:
        for exchange in list(vhost.exchange_by_name.values()):
            if exchange.name:
                labels = {"vhost": vhost.name, "exchange": exchange.name, "type": exchange.type_name}
                yield labels, vhost.bindings.count_from(exchange)
            else:
                yield None


CLUSTER_GROUPS: Final = (
    ObjectGroup(
        "vhost_status",
        (Reading[int](gauge("rabbitmq_cluster_vhost_status", "1: the virtual host runs", "vhost"), lambda one: one),),
        _vhosts,
    ),
    ObjectGroup(
        "exchange_names",
        (Reading[int](gauge("rabbitmq_cluster_exchange_name", "The exchanges; always 1", *_EXCHANGE), lambda _: 1),),
        _exchanges,
    ),
    ObjectGroup(
        "exchange_bindings",
        (
            Reading[int](
                gauge("rabbitmq_cluster_exchange_bindings", "Bindings that start at the exchange", *_EXCHANGE),
                lambda count: count,
            ),
        ),
        _exchanges,
    ),
)
