"""A little Django project with stock django-q2: its own broker, sentinel and workers. Nothing of ours runs in it."""
