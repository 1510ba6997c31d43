"""The machine of a node, as it uses it besides its reactor: clock, disk, threads, and measurements."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.access import HashingThreads
from gateway.access.hashing import WorkerPool
from gateway.config import Settings
from gateway.kernel.journal.store import Store
from gateway.management.cluster_control import ClusterControl
from gateway.management.cluster_state import ClusterState
from gateway.management.pipeline.vouched_range import LogPlace
from gateway.net.clock import ReactorClock
from gateway.net.listeners import Listeners
from gateway.net.watermarks import memory_used
from gateway.node.cell_place import CellPlace
from gateway.node.store import StoreFiles, open_store
from gateway.plugins.registry import PluginRegistry, load_plugins


def _disk_free(directory: Path) -> int:
    return shutil.disk_usage(directory).free


def _load_plugins(directory: Path | None) -> PluginRegistry:
    return load_plugins(directory, is_lenient=True)


def _nothing_to_drain(drained: Callable[[], None]) -> None:
    """Call back at once: the store writes the rest when it is closed."""
    drained()


@dataclass(frozen=True)
class NodeHost:
    """The machine of a node; a simulation replaces each part. ``Any`` is the type of Twisted's reactors.

    ``make_clock`` makes the kernel's clock. ``open_store`` opens the store that the settings name. ``make_hashing``
    makes the threads that hash passwords, from their number, the most waiting hashes, and what makes a call on the
    kernel's thread. ``memory_used`` and ``disk_free`` return bytes. ``load_plugins`` returns the plugins, with those of
    a directory. ``has_watchdog``: a thread watches the reactor, and measures for how long it waits for a processor.
    ``drain_store`` calls back once a store that is about to be closed has written everything. ``listeners`` are those
    that are bound already; the node binds its own without them. ``cluster`` returns the state of the cluster that the
    node leads, ``None`` if it runs alone; ``cluster_control`` changes that cluster. ``place`` is the cell that the node
    leads, if there are several; ``log_place`` is the number of the cell and the epoch, in each cluster.
    """

    make_clock: Callable[[Any, Callable[[], None]], ReactorClock] = ReactorClock
    open_store: Callable[[Settings, Any, StoreFiles], Store] = open_store
    make_hashing: Callable[[int, int, Callable[[Callable[[], None]], object]], WorkerPool] = HashingThreads
    memory_used: Callable[[], int] = memory_used
    disk_free: Callable[[Path], int] = _disk_free
    load_plugins: Callable[[Path | None], PluginRegistry] = _load_plugins
    has_watchdog: bool = True
    drain_store: Callable[[Callable[[], None]], None] = _nothing_to_drain
    listeners: Listeners | None = None
    cluster: Callable[[], ClusterState | None] = lambda: None
    cluster_control: ClusterControl | None = None
    place: CellPlace | None = None
    log_place: LogPlace | None = None
