"""The filing of segments as the broker requests it: into the archive, the trace, or a typed table."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.iceberg.catalogue import SCHEMAS
from gateway.columnar.iceberg.segment import Segment
from gateway.columnar.iceberg.segment_commits import SegmentCommits
from gateway.columnar.iceberg.typed_commits import TypedCommits
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.columnar.tables.schema_files import SchemaFile


class Filing:
    """Files segments in the tables at one address."""

    def __init__(self, address: IcebergAddress) -> None:
        self._commits = SegmentCommits(address)
        self._typed = TypedCommits(self._commits)

    def file(self, head: Mapping[str, Any], rows: Callable[[], Iterable[Piece]]) -> list[str]:
        """File the rows of a request; return the locations of new files, none if the segment was filed before."""
        segment = Segment.of_request(head)
        if head.get("schema") is not None:
            return self._typed.file(SchemaFile.from_head(head["schema"]), segment, rows)
        name = head["table"]
        return self._commits.file(name, SCHEMAS[name], segment, lambda _: rows()).files
