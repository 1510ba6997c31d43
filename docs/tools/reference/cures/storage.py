"""Cures of the errors of the store and of archives."""

from collections.abc import Sequence
from typing import Final

from docs.tools.reference.cures.cure import Cure

_DAMAGED: Final = "the disk or a program has changed the files of the store"
_REPAIR: Final = "restore a [backup](../operations.md), or [`gateway repair`](gateway.md#repair-check)"
_NEWER: Final = "a newer version of the gateway wrote it"
_UPGRADE: Final = "install that version again: see [upgrading](../upgrading.md)"
_DISK: Final = "the disk is full, read-only or failing, or the broker's user lacks the permission"
_FREE: Final = "free or replace the disk; correct owner and mode of the directory; start the broker again"
_TABLE: Final = "files and catalogue of the archive's table differ"
_REGISTER: Final = "[`gateway archive`](gateway.md) has the commands that register, check and tidy a table"

STORAGE: Final[Sequence[Cure]] = (
    Cure(
        "quarantine, which|there is no record",
        "the quarantine has no such number",
        "`gateway repair list` shows them",
    ),
    Cure("set aside", "a damaged record was found and is kept apart", _REPAIR),
    Cure(
        "could not be emptied|cannot be used|cannot be (written|copied|compacted|repaired)|compacted store",
        _DISK,
        _FREE,
    ),
    Cure("newer gateway|this gateway reads layout|unknown kind|does not support", _NEWER, _UPGRADE),
    Cure("not empty: a backup", "a backup never overwrites", "name a new or an empty directory"),
    Cure("there is no store", "the directory is not the data directory of a broker", "name that of the setting `data`"),
    Cure("in use by process", "the broker runs on this store", "stop it, or use `gatewayctl` to ask it"),
    Cure(
        "not a store of a gateway",
        "`data.mdb` in the data directory is that of another program",
        "another data directory",
    ),
    Cure("store failed", "the store could not write; the line before in the log has the reason", _FREE),
    Cure("copy was closed", "the node stops, or another one leads now", "none: the node that leads has the data"),
    Cure(
        "locked by a compaction|were faster|removed files|deleted by another program",
        "another program writes to the same table",
        "let it end, and repeat the command",
    ),
    Cure(
        "no samples",
        "no body could be read in the format of the schema",
        "name other samples; the lines before say why",
    ),
    Cure("^the redo log", _DAMAGED, _REPAIR),
    Cure("table|manifest|several days|^MISSING|^NAME: ERROR$", _TABLE, _REGISTER),
    Cure(
        "trace|message of a stream",
        "the archive has a row that no gateway writes",
        "report it with `gatewayctl report`",
    ),
    Cure("chunk|segment|damaged|cannot be (read|opened)|PATH", _DAMAGED, _REPAIR),
)
