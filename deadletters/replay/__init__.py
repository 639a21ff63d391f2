"""Many letters sent again at once, as one action that is counted and audited."""
