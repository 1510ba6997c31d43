"""The configuration of a member: that of its start, or what was read since."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from gateway.cluster.leadership import LEADER_LOG
from gateway.cluster.queue_log import QueueId
from gateway.config import Configured, Settings
from gateway.config.live import LIVE, differences
from gateway.kernel.errors import GatewayError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.node.control.live_settings import ReloadResult

_log: Final = StructuredLog("cluster")


class MemberConfiguration:
    """The configuration as this member knows it. ``read`` reads it again."""

    def __init__(self, configured: Configured, read: Callable[[], Configured]) -> None:
        self.configured = configured
        self._read = read

    @property
    def settings(self) -> Settings:
        """The settings that were read last."""
        return self.configured.settings

    def newest(self) -> Configured:
        """Return the configuration as it is now; that of the start if it cannot be read."""
        try:
            self.configured = self._read()
        except GatewayError as error:
            _log.warning("the configuration cannot be read, that of the start is used", reason=str(error))
        return self.configured

    def reader_of(self, log: QueueId) -> Callable[[], Configured]:
        """Return what reads the configuration of the node of one cell."""
        return lambda: of_cell(self._read(), log)

    def reload(self, renewed: Callable[[Settings], Callable[[], None]]) -> ReloadResult:
        """Read the configuration again while no node runs that would do so.

        ``renewed`` reads the certificates, and returns what uses them.

        :raises GatewayError: if the settings, a certificate or the log file is invalid; then nothing has changed.
        """
        configured = self._read()
        before, new = self.configured.settings, configured.settings
        renew = renewed(new)
        start_logging(new.log)
        renew()
        self.configured = configured
        differ = differences(before, new)
        read = len(new.tls.certificates) if before.tls.certificate is not None else 0
        return ReloadResult([k for k in differ if k in LIVE], [k for k in differ if k not in LIVE], [], read)


def of_cell(configured: Configured, log: QueueId) -> Configured:
    """Return the configuration of the node of a cell: but for the first one, it has a directory of its own."""
    if log == LEADER_LOG:
        return configured
    settings = configured.settings
    own = {"data": settings.data / f"cell-{log}", "load_definitions": None}
    return replace(configured, settings=settings.model_copy(update=own))
