from idecode_core.cli import main

main()
