"""A number says which cell has what a request is about, unless the query does."""

from typing import cast

import pytest

from gateway.management.cells.cells import Cells
from gateway.management.cells.numbering import first_number
from gateway.management.cells.routing import NUMBERED, cell_for
from gateway.management.http.errors import HttpError


class ThreeCells:
    """The first of three cells."""

    own = 1
    others = (2, 3)


CELLS = cast(Cells, ThreeCells())


@pytest.mark.parametrize("path", NUMBERED)
def test_a_number_is_of_a_cell_and_the_query_names_that_of_small_ones(path: str) -> None:
    def cell(number: int, query: dict[str, str]) -> int | None:
        return cell_for(CELLS, path, {NUMBERED[path]: str(number)}, query)

    assert [cell(first_number(each) + 5, {}) for each in (1, 2, 3)] == [None, 2, 3]
    assert [cell(5, {"cell": str(each)}) for each in (1, 2, 3)] == [None, 2, 3]
    with pytest.raises(HttpError, match="the cluster has no cell 4"):
        cell(5, {"cell": "4"})
