"""Lets a process begin at the time when the store of the earlier version was stopped: its sessions expire after a day.

Python imports it at the start, when its directory is on ``PYTHONPATH``.
"""

import time

_STOPPED_AT_S = 1795394825
_real_ns = time.time_ns
_late_by_ns = _real_ns() - _STOPPED_AT_S * 1_000_000_000

time.time_ns = lambda: _real_ns() - _late_by_ns
time.time = lambda: time.time_ns() / 1e9
