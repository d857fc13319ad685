from idecode_core.cli.app import main

main()
