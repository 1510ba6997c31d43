"""The kinds of records in the log of a store.

A *step* has the changes of one or several steps of the kernel: all of them are applied, or none. A *checkpoint* begins
with a mark, continues with pieces, which repeat the entities and messages that exist, and ends with a record that
covers everything before the mark. Steps go on in between. A *migration* is a mark with the name of a broker, pieces as
those of a checkpoint, and another mark (``migration.py``).
"""

from typing import Final

STEP: Final = b"S"
CHECKPOINT_BEGIN: Final = b"B"
CHECKPOINT_PIECE: Final = b"C"
CHECKPOINT_END: Final = b"E"
MIGRATION_BEGIN: Final = b"M"
MIGRATION_END: Final = b"N"
