"""The store's disk and threads in a simulation: a seed decides their order, their faults and what survives them."""

from gateway.simulation.disk.process_disk import ProcessDisk
from gateway.simulation.disk.simulated_disk import SimulatedDisk
from gateway.simulation.disk.threads import ProcessKilled, SimulatedThreads

__all__ = ["ProcessDisk", "ProcessKilled", "SimulatedDisk", "SimulatedThreads"]
