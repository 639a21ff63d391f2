"""The web process: ``uvicorn config.asgi:application``."""

import os

from django.core.asgi import get_asgi_application

from config import web
from config.gate import Gate

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
web.prepare()
django_application = get_asgi_application()

from tasks.api.stream import EventStreams  # noqa: E402 -- its models need Django set up

application = Gate(EventStreams(django_application))
