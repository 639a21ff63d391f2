"""The pages of the engine's console."""

from django.urls import path

from tasks.views import audit, help, hurry, kinds, profile, providers, task_page, tasks, workers

urlpatterns = [
    path("", tasks.home, name="home"),
    path("tasks/", tasks.task_list, name="tasks"),
    path("tasks/rows/", tasks.task_rows, name="task-rows"),
    path("tasks/cancel/", tasks.cancel_tasks, name="cancel-tasks"),
    path("tasks/<uuid:task_id>/", task_page.task_page, name="task"),
    path("tasks/<uuid:task_id>/live/", task_page.task_live, name="task-live"),
    path("tasks/<uuid:task_id>/cancel/", task_page.cancel_task, name="cancel-task"),
    path("tasks/<uuid:task_id>/run-now/", hurry.run_task_now, name="run-task-now"),
    path("tasks/<uuid:task_id>/priority/", hurry.set_task_priority, name="set-task-priority"),
    path("tasks/<uuid:task_id>/attempts/", task_page.task_attempts, name="task-attempts"),
    path("tasks/<uuid:task_id>/attempts/<int:attempt_id>/", task_page.attempt_details, name="attempt"),
    path("tasks/<uuid:task_id>/attempts/<int:attempt_id>/log/", task_page.attempt_log, name="attempt-log"),
    path("tasks/<uuid:task_id>/events/", task_page.task_events, name="task-events"),
    path("tasks/<uuid:task_id>/payload/", task_page.task_document, {"name": "payload"}, name="task-payload"),
    path("tasks/<uuid:task_id>/result/", task_page.task_document, {"name": "result"}, name="task-result"),
    path("kinds/", kinds.kinds, name="kinds"),
    path("kinds/live/", kinds.kinds_live, name="kinds-live"),
    path("kinds/<str:name>/pause/", kinds.pause_kind, name="pause-kind"),
    path("kinds/<str:name>/resume/", kinds.resume_kind, name="resume-kind"),
    path("providers/<str:name>/hold/", providers.hold_provider, name="hold-provider"),
    path("providers/<str:name>/release/", providers.release_provider, name="release-provider"),
    path("workers/", workers.workers, name="workers"),
    path("workers/live/", workers.workers_live, name="workers-live"),
    path("audit/", audit.audit_list, name="audit"),
    path("help/", help.help_index, name="help"),
    path("help/<slug:name>/", help.help_page, name="help-page"),
    path("profile/", profile.profile, name="profile"),
]
