"""The command line: one file per command, which parses options, calls one library function and prints the result."""
