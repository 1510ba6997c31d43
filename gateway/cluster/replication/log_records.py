"""The kinds of records in the log of a store.

A *step* has the changes of one or several steps of the kernel: all of them are applied, or none. A *checkpoint* begins
with a mark, continues with pieces, which repeat the entities and messages that exist, and ends with a record that
covers everything before the mark. Steps go on in between.
"""

from typing import Final

STEP: Final = b"S"
CHECKPOINT_BEGIN: Final = b"B"
CHECKPOINT_PIECE: Final = b"C"
CHECKPOINT_END: Final = b"E"
