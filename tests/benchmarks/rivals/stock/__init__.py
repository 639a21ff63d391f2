"""A Django project with stock django-q2 and its ORM broker."""
