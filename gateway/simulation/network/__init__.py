"""A network that cuts, delays, holds and breaks byte streams, as the seed decides."""
