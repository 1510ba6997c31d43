"""A store listener that records its reports."""

from gateway.kernel.journal.changes import Lsn, SetAside


class RecordingListener:
    """Records reports in order: watermarks as numbers, others as text."""

    def __init__(self) -> None:
        self.reports: list[int | str] = []

    def on_durable(self, watermark: Lsn) -> None:
        self.reports.append(watermark)

    def on_refused(self, reason: str) -> None:
        self.reports.append(f"refused: {reason}")

    def on_set_aside(self, aside: SetAside) -> None:
        self.reports.append(f"set aside: {aside.kind} {aside.key}: {aside.reason}")

    def on_stalled(self, reason: str) -> None:
        self.reports.append(f"stalled: {reason}")

    def on_resumed(self) -> None:
        self.reports.append("resumed")

    def on_failed(self, reason: str) -> None:
        self.reports.append(f"failed: {reason}")

    @property
    def watermark(self) -> int:
        return max((report for report in self.reports if isinstance(report, int)), default=0)

    def has(self, word: str) -> bool:
        return any(isinstance(report, str) and report.startswith(word) for report in self.reports)
