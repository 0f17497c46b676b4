"""The version of the package, alone in a module so that every room can name it."""

__version__ = "0.1.0"
