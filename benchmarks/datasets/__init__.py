"""Real data through the whole pipeline, by three protocols, while each process is killed; compared row by row."""
