"""The garbage collector, in the fields that RabbitMQ has for that of an Erlang process."""

import gc

from gateway.management.http.routes import Fields


def garbage_collection(runs: int) -> Fields:
    """Return when the collector runs, and how often it did.

    There is one for the whole broker, so every object shows the same; heap sizes mean nothing here and are 0.
    """
    young, _, old = gc.get_threshold()
    return {
        "fullsweep_after": old,
        "max_heap_size": 0,
        "min_bin_vheap_size": 0,
        "min_heap_size": young,
        "minor_gcs": runs,
    }
