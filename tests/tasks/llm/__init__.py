"""Tests of tasks.llm, against real HTTP servers."""
