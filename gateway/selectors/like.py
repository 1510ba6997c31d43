"""The patterns of LIKE: ``_`` stands for any character, ``%`` for any number of them.

Between two ``%`` stands a *piece*, which is looked for once and never tried again: where it comes first, it leaves most
room to the next. No pattern takes more than one pass over the text.
"""

from collections.abc import Callable, Iterator


def like_pattern(pattern: str, escape: str | None) -> Callable[[str], bool]:
    """Return what tells whether a text matches. What follows the escape character stands for itself.

    :raises ValueError: when nothing follows it.
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
    """Characters in a row; ``None`` among them is any character."""

    def __init__(self, letters: list[str | None]) -> None:
        self.size = len(letters)
        self._letters = letters
        self._text = "".join(letter for letter in letters if letter is not None)
        self._has_holes = len(self._text) < self.size
        # A bit for each place of the piece: where any character fits, and where each letter does.
        self._anything = sum(1 << place for place, letter in enumerate(letters) if letter is None)
        self._places = dict.fromkeys(self._text, self._anything)
        for place, letter in enumerate(letters):
            if letter is not None:
                self._places[letter] |= 1 << place

    def fits(self, text: str, at: int) -> bool:
        """Whether the text has this piece there, where it is long enough."""
        if not self._has_holes:
            return text.startswith(self._text, at)
        return all(letter is None or letter == text[at + place] for place, letter in enumerate(self._letters))

    def find(self, text: str, start: int, end: int) -> int:
        """Return where the piece comes first within the bounds, -1 if nowhere."""
        if not self._has_holes:
            return text.find(self._text, start, end)
        # Shift-And: a bit is set when the piece fits up to its place, so that all beginnings advance together.
        whole, reached = 1 << (self.size - 1), 0
        for position in range(start, end):
            reached = (reached << 1 | 1) & self._places.get(text[position], self._anything)
            if reached & whole:
                return position - self.size + 1
        return -1


def _split(pattern: str, escape: str | None) -> list[list[str | None]]:
    """Return the letters of each piece between ``%``, ``None`` for ``_``."""
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
