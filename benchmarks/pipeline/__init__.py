"""Benchmarks of the pipeline: reads into Spark beside Parquet, the archive, and the delay until a row is visible."""
