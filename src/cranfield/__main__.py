"""`python -m cranfield`."""

from cranfield.cli.main import main

if __name__ == "__main__":
    main()
