"""How often each fault is caused: once, or as often as ``make test-cluster ROUNDS=20`` says."""

import os
from typing import Final

ROUNDS: Final = int(os.environ.get("GATEWAY_TEST_CLUSTER_ROUNDS", "1"))
