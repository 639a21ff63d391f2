"""The admin of this project."""

from django.contrib.admin.apps import AdminConfig


class RedriveAdminConfig(AdminConfig):
    """Uses our admin site, which opens to the people who may configure."""

    default_site = "config.admin.RedriveAdminSite"

    def ready(self) -> None:
        """Register every app's models, then put each where it belongs."""
        super().ready()
        from django.contrib.admin import site

        from config.people import arrange

        arrange(site)
