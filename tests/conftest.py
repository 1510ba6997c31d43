"""Settings of all tests."""

from hypothesis import settings

# The deadline of an example is 200 ms by default: too short for a busy machine.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
