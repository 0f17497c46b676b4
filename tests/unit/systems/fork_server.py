"""Run Python scripts in forks of this process, which has imported its arguments: `fork_server.py MODULE ...`.

Each line of stdin is a request, `{"script": PATH, "arguments": [...], "environment": {...}, "folder": PATH, "out": PATH,
"err": PATH}`. Lines of
stdout are `[PID, null]` when a script starts, and `[PID, EXIT STATUS]` when it has ended.
"""

import importlib
import json
import os
import runpy
import select
import signal
import sys


def say(pid, status):
    os.write(1, json.dumps([pid, status]).encode() + b"\n")


def next_script():
    """Fork for each request; returns in the fork."""
    running = 0
    while True:
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            running -= 1
            say(ended[0], os.waitstatus_to_exitcode(ended[1]))
        if not select.select([0], [], [], 0.01 if running else None)[0]:
            continue
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        pid = os.fork()
        if not pid:
            return json.loads(line)
        running += 1
        say(pid, None)


def become(request):
    """Take over the streams, folder, environment and arguments of a request."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    sys.argv = [request["script"], *request["arguments"]]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    request = next_script()
    become(request)
    runpy.run_path(request["script"], run_name="__main__")
