"""``python -m cceclust``."""

from cceclust.cli.main import main

if __name__ == "__main__":
    main()
