"""Commands under `trinco lock` that write down when they work, so that a test sees whether two ever
did at a time."""

import os
import signal
import sys

from consul_scene import TTL, ConsulScene, wait_until

# Appends the boot time as fast as it can, until it is ended. A TERM does not impress it.
WRITER = '''
import os, select, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print(os.environ['TRINCO_TOKEN'], os.getpid(), flush=True)
while True:
    os.write(out, b'%.6f\\n' % time.clock_gettime(time.CLOCK_BOOTTIME))
    select.select([], [], [], 0.001)
'''


class Writers(ConsulScene):
    def begin_writing(self, name, file, *options):
        """Its line is the token and the process of the command."""
        lock = self.start(name, '--verbose', '--ttl', f'{TTL}s', *options, '--', sys.executable,
                          '-c', WRITER, str(self.folder / file))
        lock.written = self.folder / file
        return lock

    @staticmethod
    def granted(lock):
        """Its token, once it has one."""
        token, lock.command = (int(word) for word in lock.line().split())
        return token

    @staticmethod
    def times(lock):
        text = lock.written.read_text() if lock.written.exists() else ''
        return [float(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]

    def writes(self, lock):
        """When it began to write."""
        wait_until(lambda: self.times(lock), f'it writes: {lock.said}')
        return self.times(lock)[0]

    def end_of(self, lock):
        """Of its command, at once; then it gives the lock back."""
        if not hasattr(lock, 'command'):
            self.granted(lock)
        os.kill(lock.command, signal.SIGKILL)
        self.assertEqual(137, lock.end(), lock.said)
