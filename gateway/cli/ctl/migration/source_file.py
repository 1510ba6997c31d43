"""The text of a file that the user names as the other broker's."""

from pathlib import Path

from gateway.cli.ctl.errors import WrongData


def text_of(file: Path) -> str:
    """Return the text of a file. :raises WrongData: if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise WrongData(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongData(f"{file}: is not UTF-8") from None
