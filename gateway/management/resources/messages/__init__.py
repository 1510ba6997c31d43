"""Resources about messages: archives, traces, explain, delayed and kept messages, the workbench."""
