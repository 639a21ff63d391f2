"""Drills: the real product, real processes killed, and a checker that reads what is left."""
