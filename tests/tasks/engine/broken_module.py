"""A module that does not import."""

raise RuntimeError("the licence ran out")
