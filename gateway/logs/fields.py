"""The fields of a log record: its facts beside the event."""

import logging
from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = "gateway_fields"
"""The attribute of a ``logging.LogRecord`` that holds the fields."""


def fields_of(record: logging.LogRecord) -> Mapping[str, Any]:
    """Return the fields of a record; there are none in those of other libraries."""
    fields: Mapping[str, Any] = getattr(record, FIELDS, {})
    return fields
