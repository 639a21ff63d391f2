"""What ``manage.py up`` is made of: parts that are child processes, the loop that keeps them alive, and its signals."""
