"""Run one command line in a fork of the server's process: what `cranfield` and `quick-...` on the PATH of the tests do.

The server has imported the package, so a command starts in some milliseconds. It gets this process's arguments, folder,
environment and standard streams; its exit code becomes this one's. The first client starts the server.

A test run starts it five hundred times: `socket` and `json` would take it longer to import than all the rest takes.
"""

import _socket
import marshal
import os
import sys
import time

START_S = 120


def connect(address):
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(address)
    return connection


def start(address, server):
    """Start the server unless another client just has, and connect to it."""
    import fcntl
    import subprocess

    with open(f"{address}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return connect(address)
        except OSError:
            pass
        with open(f"{address}.log", "ab") as log:
            process = subprocess.Popen(
                [sys.executable, server, address],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None:
            try:
                return connect(address)
            except OSError:
                time.sleep(0.02)
    sys.exit(f"the server of the tests did not start: see {address}.log")


def main(address, server, program, *arguments):
    try:
        connection = connect(address)
    except OSError:
        connection = start(address, server)
    request = marshal.dumps((program, arguments, os.getcwd(), dict(os.environ)))
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection.sendmsg([b"s"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(len(request).to_bytes(4, sys.byteorder) + request)
    answer = b""
    while not answer.endswith(b"\n") and (data := connection.recv(64)):
        answer += data
    status = int(answer or b"70")
    if status < 0:  # ended by a signal: end the same way
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
