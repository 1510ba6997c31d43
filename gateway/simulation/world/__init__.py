"""Virtual time: events in the order of their times, tasks that wait for them, and seeded randomness."""
