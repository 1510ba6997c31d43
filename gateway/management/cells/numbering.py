"""The numbers of jobs, of actions to undo and of entries of the audit record, which differ between the cells."""

from typing import Final

#: Each cell has so many numbers: the first cell those from 1 on, the second one those behind this.
NUMBERS: Final = 10**9


def first_number(cell: int) -> int:
    """Return the number behind which those of a cell begin."""
    return (cell - 1) * NUMBERS


def cell_of_number(number: int) -> int:
    """Return the cell that a number is of."""
    return number // NUMBERS + 1
