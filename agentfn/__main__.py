"""The entry point. It answers `--version` by itself, since everything else costs more to import than that takes."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    argv = sys.argv[1:]
    if argv in (["--version"], ["-V"]):
        from agentfn import __version__

        print(f"agentfn {__version__}")  # noqa: T201  # the whole command
        return
    import gc

    # Start-up makes many objects and no garbage: looking for some 300 times would cost a twentieth of a short command.
    gc.set_threshold(50_000, 20, 20)
    from agentfn.cli import run

    sys.exit(run(argv))


if __name__ == "__main__":
    main()
