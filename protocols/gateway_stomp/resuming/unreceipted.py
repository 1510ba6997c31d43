"""The frames of a client that wait for a receipt, or for the end of a transaction, for another leader."""


class UnreceiptedFrames:
    """Owns the SEND frames by receipt, and the frames of open transactions; the sizes are the numbers of their bytes.

    ``can_be_repeated`` is false while a frame waits that cannot be sent again: a COMMIT has perhaps had its effect, an
    ACK refers to a delivery.
    """

    def __init__(self) -> None:
        self.waiting_size = 0
        self.transactions_size = 0
        self._send_by_receipt: dict[str, bytes] = {}
        self._frames_by_transaction: dict[str, list[bytes]] = {}
        #: Receipts and transactions of frames that cannot be sent again.
        self._lasting: set[str] = set()
        self._spoiled: set[str] = set()

    @property
    def can_be_repeated(self) -> bool:
        """See the class."""
        return not self._lasting and not self._spoiled

    def awaits_receipt(self, receipt: str, send: bytes | None) -> None:
        """Keep a SEND until its receipt comes; ``None`` stands for any other frame."""
        self.received(receipt)
        if send is None:
            self._lasting.add(receipt)
        else:
            self._send_by_receipt[receipt] = send
            self.waiting_size += len(send)

    def received(self, receipt: str) -> None:
        """Forget the frame of a receipt."""
        self.waiting_size -= len(self._send_by_receipt.pop(receipt, b""))
        self._lasting.discard(receipt)

    def begin(self, transaction: str, frame: bytes) -> None:
        """Keep the BEGIN of a transaction."""
        self.end(transaction)
        self._frames_by_transaction[transaction] = [frame]
        self.transactions_size += len(frame)

    def add(self, transaction: str, send: bytes | None) -> None:
        """Keep a SEND of a transaction; ``None`` stands for a frame that cannot be sent again."""
        frames = self._frames_by_transaction.get(transaction)
        if frames is None:
            return
        if send is None:
            self.end(transaction)
            self._frames_by_transaction[transaction] = []
            self._spoiled.add(transaction)
        elif transaction not in self._spoiled:
            frames.append(send)
            self.transactions_size += len(send)

    def end(self, transaction: str) -> None:
        """Forget a transaction."""
        self.transactions_size -= sum(map(len, self._frames_by_transaction.pop(transaction, ())))
        self._spoiled.discard(transaction)

    def again(self) -> bytes:
        """Return the frames: those of transactions, then the others in their order."""
        open_frames = (frame for frames in self._frames_by_transaction.values() for frame in frames)
        return b"".join([*open_frames, *self._send_by_receipt.values()])
