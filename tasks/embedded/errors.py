"""The one exception of the embedded database."""


class EmbeddedError(Exception):
    """The embedded database cannot do what was asked; the text is one sentence for a person."""
