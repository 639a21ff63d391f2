"""An app whose handlers do something outside of Redrive, and can tell whether they did."""
