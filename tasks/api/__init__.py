"""The HTTP API for programs: submit, watch, cancel; health and metrics."""
