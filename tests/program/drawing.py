"""Draw the pictures of every command in one process: a library that draws takes half a second to start, and cannot fork.

A connection sends the arguments of `vl_convert.vegalite_to_svg` as a line of JSON, and gets its result or its error.
"""

import json
import os
import socket
from functools import cache

import vl_convert

_draw = vl_convert.vegalite_to_svg


def draw_in_one_process(address):
    """Start the process, and make the library send to `address` here and in every fork; it ends with this process."""
    parent = os.getpid()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    if not os.fork():
        _answer(listener, parent)
        os._exit(0)
    listener.close()

    def draw(*arguments, **settings):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(address)
            with connection.makefile("rwb") as stream:
                stream.write(json.dumps((arguments, settings)).encode() + b"\n")
                stream.flush()
                drawn, error = json.loads(stream.readline())
        if error is not None:
            raise ValueError(error)
        return drawn

    vl_convert.vegalite_to_svg = draw


def _answer(listener, parent):
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        try:
            with connection, connection.makefile("rwb") as stream:
                stream.write(_drawn(stream.readline()))
        except OSError:  # the command was interrupted
            continue


@cache
def _drawn(line):
    try:
        arguments, settings = json.loads(line)
        answer = _draw(*arguments, **settings), None
    except ValueError as error:
        answer = None, str(error)
    return json.dumps(answer).encode() + b"\n"
