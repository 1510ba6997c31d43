"""Patterns of LIKE: ``_`` matches any character, ``%`` any number of characters.

The text between two ``%`` is a *piece*. Its first occurrence is taken without backtracking, since that leaves most
room for the next piece. A match takes one pass over the text.
"""

from collections.abc import Callable, Iterator


def like_pattern(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return a predicate for texts that match. A character after the escape character is literal.

    :raises ValueError: if nothing follows an escape.
    """
    first, *further = (_Piece(letters) for letters in _split(pattern, escape))
    if not further:
        return lambda text: len(text) == first.size and first.fits(text, 0)
    *middle, last = further
    least = first.size + sum(piece.size for piece in further)

    def matches(text: str) -> bool:
        end = len(text) - last.size
        if len(text) < least or not (first.fits(text, 0) and last.fits(text, end)):
            return False
        position = first.size
        for piece in middle:
            found = piece.find(text, position, end)
            if found < 0:
                return False
            position = found + piece.size
        return True

    return matches


class _Piece:
    """Consecutive characters; ``None`` matches any character."""

    def __init__(self, letters: list[str | None]) -> None:
        self.size = len(letters)
        self._letters = letters
        self._text = "".join(letter for letter in letters if letter is not None)
        self._has_holes = len(self._text) < self.size
        # One bit for each position of the piece: positions that accept any character, and positions that accept each
        # letter.
        self._anything = sum(1 << place for place, letter in enumerate(letters) if letter is None)
        self._places = dict.fromkeys(self._text, self._anything)
        for place, letter in enumerate(letters):
            if letter is not None:
                self._places[letter] |= 1 << place

    def fits(self, text: str, at: int) -> bool:
        """Return whether the piece matches at this position of a sufficiently long text."""
        if not self._has_holes:
            return text.startswith(self._text, at)
        return all(letter is None or letter == text[at + place] for place, letter in enumerate(self._letters))

    def find(self, text: str, start: int, end: int) -> int:
        """Return the first position of the piece within the bounds, or -1."""
        if not self._has_holes:
            return text.find(self._text, start, end)
        # Shift-And: a bit is set if the piece matches up to its position, so all candidate starts advance together.
        whole, reached = 1 << (self.size - 1), 0
        for position in range(start, end):
            reached = (reached << 1 | 1) & self._places.get(text[position], self._anything)
            if reached & whole:
                return position - self.size + 1
        return -1


def _split(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Return the letters of each piece between ``%``, with ``None`` for ``_``."""
    pieces: list[list[str | None]] = [[]]
    letters: Iterator[str] = iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None:
                raise ValueError("nothing follows the escape character")
            pieces[-1].append(following)
        elif letter == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if letter == "_" else letter)
    return pieces
