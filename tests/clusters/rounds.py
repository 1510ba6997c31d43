"""The number of times that a test causes each fault: one, or more by ``make test-cluster ROUNDS=20``."""

import os
from typing import Final

ROUNDS: Final = int(os.environ.get("GATEWAY_TEST_CLUSTER_ROUNDS", "1"))
