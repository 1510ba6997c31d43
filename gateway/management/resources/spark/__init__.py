"""Resources of the Spark pipeline: progress, runs, the sink."""
