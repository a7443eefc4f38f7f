from heckesel.cli import main

main()
