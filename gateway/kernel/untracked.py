"""Containers that the garbage collector does not visit, because it would visit each of their items.

Messages are not part of cycles, so the collector neither knows nor counts them when they are compiled (``acyclic``).
But it visits the items of each container that it examines, and few containers may hold very many. A million messages
in the new queues of a fanout exchange made pauses of 15 to 60 ms, one for each generation.
"""

from ctypes import py_object, pythonapi
from typing import Final, TypeVar

T = TypeVar("T")

_untrack: Final = pythonapi.PyObject_GC_UnTrack
_untrack.argtypes = (py_object,)
_untrack.restype = None


def untracked(container: T) -> T:
    """Return the container, which the garbage collector does not visit from now on; its items keep their own state.

    Python does this itself with dictionaries and tuples of numbers and texts. A cycle through the container is never
    collected: use it where the items do not lead back to the container, or where its owner empties it.
    """
    _untrack(container)
    return container
