"""Runs a program without a network: in a namespace of its own, from which one address leads to the model.

A program of its own, of the standard library alone: `python -I -S namespace.py SOCKET PORT PROGRAM ARGUMENT...`. With a
socket, connections to 127.0.0.1:PORT inside are passed on to it. Exit status 97: the system allows no namespace.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
import threading

if sys.platform == "win32":
    raise ImportError("namespaces require Linux")

REFUSED, NOT_FOUND = 97, 127
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1


def isolate() -> None:
    """Leave the network. Only the address of the machine itself is left."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_USER | _NEW_NET):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(descriptor, text.encode())
        os.close(descriptor)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, _GET_FLAGS, request))[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def relay(listener: socket.socket, path: str) -> None:
    """Pass every connection on to a socket outside."""
    while True:
        inner = listener.accept()[0]
        outer = socket.socket(socket.AF_UNIX)
        try:
            outer.connect(path)
        except OSError:
            inner.close()
            continue
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=copy, args=(source, target), daemon=True).start()


def copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, and its end."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def main() -> int:
    """Isolate, start the relay where there is one, and run the program."""
    path, port, program = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    try:
        isolate()
    except OSError as error:
        sys.stderr.write(f"no network namespace: {os.strerror(error.errno or 0)}\n")
        return REFUSED
    if path:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=relay, args=(listener, path), daemon=True).start()
    try:
        status = subprocess.call(program)
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {os.strerror(error.errno or 0)}\n")
        return NOT_FOUND
    if status < 0:
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
