"""LZ4 files: what ranx packs as CBOR is read as JSON, and anything else as it is."""

from __future__ import annotations

import json
from typing import Any

from cranfield.base.errors import CranfieldError, MissingExtraError, Problem, shorten

LZ4_MAGIC = b"\x04\x22\x4d\x18"
MAX_BYTES = 1 << 29
"""Most bytes that a file unpacks to."""


def unpacked_lz4(data: bytes, shown: str, error: type[CranfieldError]) -> bytes:
    """What an LZ4 frame unpacks to; where that is the packed CBOR of ranx, as JSON.

    Raises:
        CranfieldError: of type `error`: it is damaged, or unpacks to too much.
        MissingExtraError: no library is there to unpack it.
    """
    try:
        import cbor2
        import lz4.frame
    except ImportError:
        raise MissingExtraError.for_extra(f"{shown}: an LZ4 file", "ranx") from None
    try:
        unpacked = _frame(lz4.frame, data)
        if not unpacked.startswith(LZ4_MAGIC):
            return unpacked
        return json.dumps(cbor2.loads(_frame(lz4.frame, unpacked))).encode()
    except (RuntimeError, ValueError, TypeError, EOFError) as cause:
        raise error(Problem("the LZ4 data are damaged or cut short", path=shown, got=shorten(str(cause)))) from None


def _frame(lz4_frame: Any, data: bytes) -> bytes:
    unpacker = lz4_frame.LZ4FrameDecompressor()
    unpacked: bytes = unpacker.decompress(data, max_length=MAX_BYTES)
    if not unpacker.eof:
        raise ValueError("it does not end, or is too large")
    return unpacked
