"""The subscriptions of a client, for another leader."""

from gateway_stomp.resuming.frame_head import FrameHead, with_header, without_headers
from gateway_stomp.versions import Version

#: The header of a stream's messages, and of a subscription that begins there.
OFFSET = "x-stream-offset"


class RelayedSubscriptions:
    """Owns the SUBSCRIBE frames, and how far the client has read in streams."""

    def __init__(self) -> None:
        self._frame_by_key: dict[str, tuple[bytes, int]] = {}
        self._offset_by_key: dict[str, int] = {}
        #: The subscriptions whose receipt has not come.
        self._key_by_receipt: dict[str, str] = {}

    @staticmethod
    def key(head: FrameHead, version: Version) -> str:
        """Return what names a subscription: its id, or its destination, which 1.0 allows."""
        return head.value("id", version) or head.value("destination", version) or ""

    def begin(self, key: str, frame: bytes, size: int, receipt: str | None) -> None:
        """Note a SUBSCRIBE; ``size`` is that of its head."""
        self._frame_by_key[key] = frame, size
        if receipt is not None:
            self._key_by_receipt[receipt] = key

    @property
    def await_receipts(self) -> bool:
        """Whether the receipt of one of them has not come."""
        return bool(self._key_by_receipt)

    def received(self, receipt: str) -> None:
        """Note that a receipt has come."""
        self._key_by_receipt.pop(receipt, None)

    def end(self, key: str) -> None:
        """Note an UNSUBSCRIBE."""
        self._frame_by_key.pop(key, None)
        self._offset_by_key.pop(key, None)

    def reached(self, key: str, offset: int) -> None:
        """Note the offset of a stream's message that was delivered."""
        if key in self._frame_by_key:
            self._offset_by_key[key] = offset

    def again(self) -> bytes:
        """Return the SUBSCRIBE frames, which go on where the client is. A receipt that has come is not asked for."""
        awaiting = set(self._key_by_receipt.values())
        frames = []
        for key, (frame, size) in self._frame_by_key.items():
            known = () if key in awaiting else ("receipt",)
            if key in self._offset_by_key:
                rest = without_headers(frame, size, OFFSET, *known)
                frames.append(with_header(rest, OFFSET, f"offset={self._offset_by_key[key] + 1}"))
            else:
                frames.append(without_headers(frame, size, *known))
        return b"".join(frames)
