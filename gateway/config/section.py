"""Base class of all tables of settings."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of settings: immutable, strictly typed, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
