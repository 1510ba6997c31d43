"""Sends a task, which is retried and sends a delayed one."""

from tasks import charge

charge.delay("anna")
print("sent")
