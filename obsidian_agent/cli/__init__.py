"""The command line: the same core without the screen. `main.main(argv)` answers an exit code."""
