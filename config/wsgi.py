"""The web process for servers that speak WSGI; event streams need ``config.asgi``."""

import os

from django.core.wsgi import get_wsgi_application

from config import web

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
web.prepare()
application = get_wsgi_application()
