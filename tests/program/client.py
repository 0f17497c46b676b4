"""Run one command line in a fork of the server's process: what `cranfield` and `quick-pytest` on the PATH of the tests do.

The server has imported the package, so a command starts in some milliseconds. It gets this process's arguments, folder,
environment and standard streams; its exit code becomes this one's. The first client starts the server.
"""

import array
import fcntl
import json
import os
import socket
import subprocess
import sys
import time

START_S = 120


def connect(address):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    return connection


def start(address, server):
    """Start the server unless another client just has, and connect to it."""
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
    request = {"program": program, "arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    streams = array.array("i", (0, 1, 2))
    with connection, connection.makefile("rwb") as stream:
        connection.sendmsg([b"s"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        stream.write(json.dumps(request).encode() + b"\n")
        stream.flush()
        answer = stream.readline()
    status = json.loads(answer or "70")
    if status < 0:  # ended by a signal: end the same way
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
