"""The dependency that the fleet's processes call: it notes who is there at the same time, and
answers as it is told to. The protocol is described in dependency_client.hpp."""

import collections
import random
import socket
import threading
import time


def now():
    """Microseconds of the boot clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Call:
    def __init__(self, instance, breaker, kind, asked):
        self.instance, self.breaker, self.kind, self.asked = instance, breaker, kind, asked
        self.arrived = now()
        self.left = 0


class Dependency:
    def __init__(self, path, seed=1):
        self.path = path
        self.random = random.Random(seed)
        self.failing = collections.defaultdict(float)  # by breaker: share of calls
        self.hanging = collections.defaultdict(float)
        self.takes = (0.001, 0.005)   # s
        self.hangs = 1.0
        self.bad_callers = set()      # instances whose calls all fail
        self.calls = []
        self.trouble = []
        self.over = threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(512)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        call = None
        try:
            with connection, connection.makefile('rb') as lines:
                for line in lines:
                    _, instance, breaker, kind, asked = line.decode().split()
                    call = Call(instance, breaker, kind, int(asked))
                    self.calls.append(call)
                    answer = self.answer(connection, call)
                    call.left = now()
                    connection.sendall(answer)
        except OSError:
            pass  # it was killed
        except ValueError as error:
            self.trouble.append(repr(error))
        finally:
            if call is not None and call.left == 0:
                call.left = now()

    def answer(self, connection, call):
        if self.random.random() < self.hanging[call.breaker]:
            self.wait(connection, self.hangs)
            return b'bad\n'
        self.wait(connection, self.random.uniform(*self.takes))
        is_bad = (call.instance in self.bad_callers
                  or self.random.random() < self.failing[call.breaker])
        return b'bad\n' if is_bad else b'good\n'

    def wait(self, connection, seconds):
        """Not for who has gone: nobody is there any more."""
        connection.settimeout(seconds)
        try:
            if connection.recv(1, socket.MSG_PEEK) == b'':
                raise ConnectionError('it has gone')
        except (TimeoutError, socket.timeout):
            pass
        connection.settimeout(None)

    def close(self):
        self.listener.close()
