"""The gateways of the tests of this folder: alone, or each a follower of a cluster of three.

``GATEWAY_TEST_ON_A_CLUSTER=1`` chooses the latter; ``make test-cluster ROUNDS=2`` does so.
"""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from tests.interop.broker import Broker
from tests.running import Gateway, started, stopped_in_order

ON_A_CLUSTER: Final = bool(os.environ.get("GATEWAY_TEST_ON_A_CLUSTER"))


def gateway_at(directory: Path, *settings: str) -> Gateway:
    """Return a gateway that is not started."""
    if not ON_A_CLUSTER:
        return Gateway(directory, *settings)
    from tests.interop.followers import FollowerGateway

    return FollowerGateway(directory, *settings)


def gateway_in(directory: Path, *settings: str) -> AbstractContextManager[Gateway]:
    """Run a gateway within the block. It may be stopped and restarted in the block."""
    return started(gateway_at(directory, *settings))


def running_gateway(directory: Path, *settings: str) -> AbstractContextManager[Broker]:
    """Run a gateway within the block; stopping it with SIGTERM must succeed."""
    return stopped_in_order(gateway_at(directory, *settings))
