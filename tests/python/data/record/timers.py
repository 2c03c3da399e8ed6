"""Works in periods that a timer (timerfd) tells: timers.py HOW PERIODS PERIOD_S WORK_S."""

import ctypes
import os
import select
import struct
import sys
import time

how, periods, period_s, work_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
library = ctypes.CDLL(None)
file = library.timerfd_create(time.CLOCK_MONOTONIC, 0)
poller = select.epoll()
poller.register(file, select.EPOLLIN)
period_ns = int(period_s * 1e9)
library.timerfd_settime(file, 0, struct.pack("4l", 0, period_ns, 0, period_ns), None)
for _ in range(periods):
    if how == "epoll":
        poller.poll()
    os.read(file, 8)
    end = time.thread_time() + work_s
    while time.thread_time() < end:
        pass
