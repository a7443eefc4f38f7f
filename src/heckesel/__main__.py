"""The program: `heckesel` in the shell, or `python -m heckesel`."""

import sys


def main() -> None:
    """Ctrl-C ends with exit 1 here as in every command, also while modules are imported."""
    try:
        from heckesel.cli import main as run_command

        run_command()
    except KeyboardInterrupt:
        print("heckesel: stopped", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
