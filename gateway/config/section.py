"""What every table of settings is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)
