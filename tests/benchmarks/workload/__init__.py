"""An app of handlers that do next to nothing, so that what is measured is the engine."""
