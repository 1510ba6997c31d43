"""Sends a task that is retried, and one that is delayed by the broker for three seconds."""

from tasks import charge, remind

charge.delay("anna")
remind.apply_async(["anna"], headers={"x-delay": 3000})
print("sent")
