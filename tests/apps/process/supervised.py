"""A command under a guardian, started by supervise_driver, and what can be seen of it from outside.

Every process that a test starts inherits a marker in its environment, by which all of them are
found, and none but them.
"""

import os
import select
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

DRIVER = []     # the words that start the driver; set by the script that runs the tests
LIMIT_S = 20    # for what takes milliseconds unless the machine is busy

# A test run in the background of a script was told to ignore them, and so would be its commands.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pause(seconds=0.002):
    select.select([], [], [], seconds)


def boot_ms():
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)


def until(condition, what):
    """The first answer of the condition that is true; fails when there is none in time."""
    end = boot_ms() + LIMIT_S * 1000
    while True:
        answer = condition()
        if answer:
            return answer
        if boot_ms() > end:
            raise AssertionError(f'waited in vain for: {what}')
        pause()


def contents(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def status_lines(pid):
    """/proc/PID/status as a dictionary; empty when there is no such process."""
    return dict(line.split(':\t', 1) for line in contents(f'/proc/{pid}/status').decode(
        errors='replace').splitlines() if ':\t' in line)


def state(pid):
    """The letter of proc(5), '' when there is no such process."""
    return status_lines(pid).get('State', '')[:1]


def is_alive(pid):
    return state(pid) not in ('', 'Z', 'X')


def marked(marker):
    """The living processes with the marker in their environment."""
    needle = marker.encode()
    return [int(name) for name in os.listdir('/proc')
            if name.isdigit() and needle in contents(f'/proc/{name}/environ')
            and is_alive(name)]


def marked_as(marker, *words):
    """Whether a living process with the marker runs these words. A shell whose command has not
    begun yet waits for it in a way in which signals to the group are lost or stop the wrong one."""
    wanted = b'\0'.join(word.encode() for word in words) + b'\0'
    return any(contents(f'/proc/{pid}/cmdline') == wanted for pid in marked(marker))


class SupervisedTest(unittest.TestCase):
    def setUp(self):
        self.marker = f'TRINCO_TEST_MARKER={uuid.uuid4().hex}'
        name, value = self.marker.split('=')
        self.environment = dict(os.environ, **{name: value})
        folder = tempfile.TemporaryDirectory(prefix='trinco-supervise-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events_file = self.path('events')
        self.addCleanup(self.end_everything)

    def end_everything(self):
        """Whatever a failed test has left."""
        for pid in marked(self.marker):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def path(self, name):
        return os.path.join(self.folder, name)

    def words(self, options, command):
        return [*DRIVER, '--events', self.events_file, *map(str, options), '--', *command]

    def run_command(self, command, options=(), **how):
        how.setdefault('timeout', LIMIT_S)
        how.setdefault('capture_output', True)
        return subprocess.run(self.words(options, command), env=self.environment, **how)

    def start(self, command, options=(), **how):
        """The wrapper, once the command runs."""
        wrapper = subprocess.Popen(self.words(options, command), env=self.environment, **how)
        self.addCleanup(wrapper.wait)
        self.addCleanup(lambda: wrapper.poll() is None and wrapper.kill())
        self.event('started')
        return wrapper

    def code(self, wrapper):
        return wrapper.wait(timeout=LIMIT_S)

    def events(self):
        """[(name, number, pid, ms)]"""
        lines = contents(self.events_file).decode().splitlines()
        return [(name, int(number), int(pid), int(ms))
                for name, number, pid, ms in (line.split() for line in lines)]

    def forget_events(self):
        if os.path.exists(self.events_file):
            os.unlink(self.events_file)

    def event(self, name, count=1):
        """The event, once it has come so often."""
        def seen():
            found = [event for event in self.events() if event[0] == name]
            return found[count - 1] if len(found) >= count else None
        return until(seen, f'event {name}, {count} times')

    def command_pid(self):
        return self.event('started')[2]

    def guardian_pid(self):
        return int(status_lines(self.command_pid())['PPid'])

    def written(self, name, count=1):
        """The lines of a file below the folder, once there are so many."""
        def lines():
            found = contents(self.path(name)).decode().splitlines()
            return found if len(found) >= count else None
        return until(lines, f'{count} lines in {name}')

    def assert_nobody_left(self):
        until(lambda: not marked(self.marker), 'the end of every process of the test')
