from heckesel.cli import run_command
from reproduction.command import reproduce

run_command(reproduce, "python -m reproduction")
