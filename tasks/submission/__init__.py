"""Submitting many payloads from a stream of lines, and waiting until their tasks have ended."""
