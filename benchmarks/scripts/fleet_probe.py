"""Asks a coordinator's loop again and again whether it is free: `fleet_probe.py ADDRESS`. For each line it is given
it says the longest time, in seconds, that an answer to a ping of HTTP/2 has taken since the line before.
"""

import os
import select
import socket
import sys
import time

from benchmarks.scripts.grpc_wire import PREFACE, frame_bytes

PING, ACK = 6, 1
INTERVAL_S = 0.003
SIZE = 9 + 8  # of a ping's frame


def main(address: str) -> None:
    host, _, port = address.rpartition(":")
    server = socket.create_connection((host, int(port)))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server.sendall(PREFACE + frame_bytes(4, 0, 0, b""))
    time.sleep(0.1)
    server.recv(65536)  # its own settings, and that it has seen ours
    longest = 0.0
    while True:
        asked = time.perf_counter()
        server.sendall(frame_bytes(PING, 0, 0, b"strata\0\0"))
        answer = b""
        while len(answer) < SIZE:
            part = server.recv(65536)
            if not part:
                raise SystemExit("the coordinator has ended")
            answer += part
        longest = max(longest, time.perf_counter() - asked)
        if select.select([sys.stdin], [], [], INTERVAL_S)[0]:
            os.read(0, 4096)
            print(longest, flush=True)
            longest = 0.0


main(sys.argv[1])
