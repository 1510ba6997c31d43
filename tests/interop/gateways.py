"""The gateways of the tests of this folder: alone, or each a follower of a cluster of three.

``GATEWAY_TEST_ON_A_CLUSTER=1`` chooses the latter; ``make test-cluster ROUNDS=2`` does so.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.interop.broker import Broker
from tests.running import Gateway

ON_A_CLUSTER: Final = bool(os.environ.get("GATEWAY_TEST_ON_A_CLUSTER"))


def gateway_at(directory: Path, *settings: str) -> Gateway:
    """Return a gateway that is not started."""
    if not ON_A_CLUSTER:
        return Gateway(directory, *settings)
    from tests.interop.followers import FollowerGateway

    return FollowerGateway(directory, *settings)


@contextmanager
def gateway_in(directory: Path, *settings: str) -> Iterator[Gateway]:
    """Run a gateway within the block. It may be stopped and restarted in the block."""
    gateway = gateway_at(directory, *settings)
    try:
        yield gateway.start()
    finally:
        gateway.end()


@contextmanager
def running_gateway(directory: Path, *settings: str) -> Iterator[Broker]:
    """Run a gateway within the block; stopping it with SIGTERM must succeed."""
    with gateway_in(directory, *settings) as gateway:
        yield gateway.broker
        exit_code = gateway.stop()
        assert exit_code == 0, f"the gateway stopped with exit code {exit_code}:\n{gateway.log}"
