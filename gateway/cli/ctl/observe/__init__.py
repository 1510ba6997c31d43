"""``gatewayctl observe``: a live view of the broker in a terminal."""
