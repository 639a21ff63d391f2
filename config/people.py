"""Users, groups and schedules in the admin: for superusers alone, audited."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.apps import apps
from django.contrib.admin import AdminSite, display
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import OuterRef, Subquery
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from tasks.admin.base import Audited
from tasks.engine import schedules
from tasks.models import Task
from tasks.words import word

#: Pages of django-q2 for queues and results that nothing is put into here.
UNUSED = ("Success", "Failure", "OrmQ")


class SuperuserOnly(Audited):
    """Who may change people may become anyone, so only a superuser may; audit rows name fields, not values."""

    audit_values = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Superusers."""
        return bool(request.user.is_superuser)


class PeopleAdmin(SuperuserOnly, UserAdmin):  # type: ignore[type-arg]
    """Users: who may sign in, and in which groups."""

    list_display = ("username", "email", "is_active", "is_superuser", "in_groups", "last_login")
    list_filter = ("is_active", "is_superuser", "groups")
    filter_horizontal = ("groups",)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        (_("About"), {"fields": ("first_name", "last_name", "email")}),
        (
            _("May"),
            {
                "description": _(
                    "view: see the console. operate: also act on tasks, letters, kinds and providers. configure: also"
                    " change the configuration."
                ),
                "fields": ("is_active", "groups", "is_superuser"),
            },
        ),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    readonly_fields = ("last_login", "date_joined")

    @display(description=_("groups"))
    def in_groups(self, obj: User) -> str:
        """The names of the user's groups."""
        return ", ".join(group.name for group in obj.groups.all()) or "–"

    def get_queryset(self, request: HttpRequest) -> Any:
        """With their groups, in one query."""
        return super().get_queryset(request).prefetch_related("groups")


class GroupsAdmin(SuperuserOnly, GroupAdmin):
    """Groups: what their members may do."""


class ScheduleForm(ModelForm):  # type: ignore[type-arg]
    """A schedule that could not be fired is refused while somebody looks."""

    class Meta:
        """What django-q2's own words leave open: which clock."""

        help_texts: ClassVar = {
            "next_run": _("When it runs next, in the time zone of your profile."),
            "cron": _(
                "For the type Cron, in UTC: “0 3 * * *” is every day at 3:00 UTC. It also gives a new schedule its"
                " first run."
            ),
        }

    def clean(self) -> dict[str, Any] | None:
        """Refuse what the scheduler could not read: arguments, keyword arguments, times without a next one."""
        cleaned = super().clean()
        if self.errors:
            return cleaned
        schedule = self._meta.model(**self.cleaned_data)
        schedule.next_run = schedule.next_run or timezone.now()
        for field, check in self._checks(schedule.schedule_type):
            try:
                check(schedule)
            except schedules.Unreadable as error:
                self.add_error(field, str(error))
        return cleaned

    def _checks(self, schedule_type: str) -> list[tuple[str, Callable[[Any], Any]]]:
        checks: list[tuple[str, Callable[[Any], Any]]] = [("args", schedules.positional), ("kwargs", schedules.named)]
        if schedule_type != self._meta.model.ONCE:
            repeated_by = "cron" if schedule_type == self._meta.model.CRON else "next_run"
            checks.append((repeated_by, partial(schedules.next_time, now=timezone.now())))
        return checks


class SchedulesAdmin(SuperuserOnly):
    """Schedules name any function to run, so they are for superusers, and audited. Their last task is ours."""

    form = ScheduleForm
    list_display = ("id", "name", "func", "schedule_type", "repeats", "cluster", "next_run", "last_task")
    list_display_links = ("id", "name")
    list_filter = ("next_run", "schedule_type", "cluster")
    search_fields = ("name", "func")

    def get_queryset(self, request: HttpRequest) -> Any:
        """With the last task of each, by the call's id that it was given."""
        last = Task.objects.filter(trace_id=OuterRef("task")).exclude(trace_id="").order_by("-id")
        return (
            super()
            .get_queryset(request)
            .annotate(last_id=Subquery(last.values("id")[:1]), last_status=Subquery(last.values("status")[:1]))
        )

    @display(description=_("last task"))
    def last_task(self, obj: Any) -> str:
        """Its status, which leads to its page; a dash where there was none, or where it is pruned."""
        if obj.last_id is None:
            return "–"
        return format_html('<a href="{}">{}</a>', reverse("task", args=[obj.last_id]), word(obj.last_status))


def arrange(site: AdminSite) -> None:
    """Put users, groups and django-q2's models where they belong. Called once every app has registered its own."""
    for model, model_admin in ((User, PeopleAdmin), (Group, GroupsAdmin)):
        site.unregister(model)
        site.register(model, model_admin)
    for name in UNUSED:
        model = apps.get_model("django_q", name)
        if site.is_registered(model):
            site.unregister(model)
    schedule = apps.get_model("django_q", "Schedule")
    site.unregister(schedule)
    site.register(schedule, SchedulesAdmin)
