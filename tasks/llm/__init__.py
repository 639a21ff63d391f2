"""Calls to language models. Knows no database: plain values in, plain values out.

Only this package imports ``openai``, and only ``provider`` and ``stream`` in it do, so that checking a template or a
schema stays cheap.
"""
