"""One command, measured: `timed.py OUT command …` runs it with stdout into OUT and prints its cost as JSON.

A process of its own, because the peak memory of a child counts that of the process that started it: this one is small
(about 10 MB, the least that can be shown). Processor time and peak memory come from wait4, so they hold the children
that the command waited for; of several processes the peak is that of the largest.
"""

import os
import sys
import time

out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
command = sys.argv[2:]
began = time.perf_counter()
child = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
_, status, used = os.wait4(child, 0)
wall = time.perf_counter() - began
print(
    f'{{"wall": {wall:.6f}, "user": {used.ru_utime:.6f}, "system": {used.ru_stime:.6f},'
    f' "peak_kb": {used.ru_maxrss}, "status": {os.waitstatus_to_exitcode(status)}}}'
)
