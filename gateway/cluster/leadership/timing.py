"""The times of beats and leases, in seconds.

A leader gives up ``LEASE_S`` after it sent its last renewal, and others wait for ``SILENT_S`` after they saw it. While
their clocks run at the same speed, no two nodes lead at the same time.
"""

from typing import Final

#: The time between two looks at what is due.
TICK_S: Final = 0.5

#: The time between two writes of a node's record, and of the lease.
BEAT_S: Final = 1.5

#: A node or a leader without a new record for so long may be dead.
SILENT_S: Final = 5.0

#: A leader leads for so long after the sending of its last renewal.
LEASE_S: Final = 4.0

#: The time that a candidate leaves to each one before it.
RANK_S: Final = 1.0

#: The pause after a campaign that failed.
RETRY_S: Final = 1.0

#: A call without an answer for so long means that the engine cannot be reached; the call itself may take longer.
ANSWER_S: Final = 4.0
