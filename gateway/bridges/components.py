"""The components of runtime parameters that bridges have, with the checks of their values."""

from collections.abc import Mapping
from typing import Final

from gateway.bridges.mqtt_bridge_rules import COMPONENT as MQTT_BRIDGE
from gateway.bridges.mqtt_bridge_rules import require_valid_bridge
from gateway.bridges.shovel_definition import COMPONENT as SHOVEL
from gateway.bridges.shovel_definition import require_valid_shovel
from gateway.bridges.upstreams import UPSTREAM, UPSTREAM_SET, require_valid_upstream, require_valid_upstream_set
from gateway.kernel.broker.entity_checks import ParameterCheck

PARAMETER_CHECKS: Final[Mapping[str, ParameterCheck]] = {
    MQTT_BRIDGE: require_valid_bridge,
    SHOVEL: require_valid_shovel,
    UPSTREAM: require_valid_upstream,
    UPSTREAM_SET: require_valid_upstream_set,
}
