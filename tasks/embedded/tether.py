"""Become another program that ends with its parent.

usage: python -I -S tether.py PARENT_PID SIGNAL UID GID PROGRAM [ARGUMENT …]

Asks the kernel (Linux: PR_SET_PDEATHSIG) to send SIGNAL (0: none) when the parent ends, however it ends, drops to UID
and GID (-1: stay as we are), and executes PROGRAM. A script and not a ``preexec_fn``, which may deadlock in a parent
that has threads; everything is imported before the drop, since the account may not be able to read our Python.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Become the program of ``argv``, after four words: parent's pid, last signal, user and group (-1: as we are)."""
    parent, signal_number, uid, gid = (int(word) for word in argv[:4])
    libc = ctypes.CDLL(None, use_errno=True)
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After the drop: changing credentials clears the request.
    if signal_number and sys.platform == "linux":
        if libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        # The parent may have died before the request was in place.
        if os.getppid() != parent:
            sys.exit(1)
    os.execvp(argv[4], argv[4:])  # noqa: S606 - our own words, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
