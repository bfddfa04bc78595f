"""``python -m daedal`` is the command ``daedal``."""

from daedal.cli import main

main()
