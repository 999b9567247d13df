"""The command `knee`."""

import signal
import sys

from knee import _knee


def main() -> int:
    """Does what the arguments say; gives the exit code."""
    # Ctrl-C ends the command, not the interpreter's next line.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _knee.main([sys.executable, "-m", "knee"], ["knee", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
