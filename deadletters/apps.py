"""The dead letters: what died, why, and what became of it."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class DeadLettersConfig(AppConfig):
    """Registers the one recorder of deaths with the lifecycle."""

    name = "deadletters"
    verbose_name = _("Dead letters")

    def ready(self) -> None:
        """Tell the lifecycle who writes the letters."""
        from deadletters import recorder
        from tasks import lifecycle

        lifecycle.register_recorder(recorder.LetterRecorder())
