"""The end of a handshake that a library makes in its own thread."""

from twisted.internet.defer import Deferred


def end_handshake(answered: Deferred[None], refusal: Exception | None) -> None:
    """Report the end of a handshake, with the error of a refusal; do nothing if it was reported before."""
    if answered.called:
        return
    if refusal is None:
        answered.callback(None)
    else:
        answered.errback(refusal)
