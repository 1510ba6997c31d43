"""JSON view of the garbage collector, in RabbitMQ's fields for an Erlang process."""

import gc

from gateway.management.http.routes import Fields


def garbage_collection(runs: int) -> Fields:
    """Return the thresholds and the number of runs of the collector.

    The broker has a single collector, so all entities show the same values; heap sizes do not apply and are 0.
    """
    young, _, old = gc.get_threshold()
    return {
        "fullsweep_after": old,
        "max_heap_size": 0,
        "min_bin_vheap_size": 0,
        "min_heap_size": young,
        "minor_gcs": runs,
    }
