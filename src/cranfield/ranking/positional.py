"""Reading a file at a place, as several threads do with one descriptor. Only the C reader, which Windows has not, does so."""

import os
import sys

if sys.platform == "win32":

    def read_at(file: int, size: int, begin: int) -> bytes:
        """Not there."""
        raise NotImplementedError

    def read_into(file: int, view: memoryview, place: int) -> int:
        """Not there."""
        raise NotImplementedError
else:

    def read_at(file: int, size: int, begin: int) -> bytes:
        """Bytes from a place on, fewer at the end."""
        return os.pread(file, size, begin)

    def read_into(file: int, view: memoryview, place: int) -> int:
        """Fill a buffer from a place on; the number of bytes."""
        return os.preadv(file, [view], place)
