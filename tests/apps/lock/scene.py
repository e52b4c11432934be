"""What the tests of `trinco lock` share: a store of their own, commands that can be held and let
go, and waiting for conditions. Takes the program's path as the first argument."""

import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(1))
PATIENCE = 30  # seconds; no test needs as much, a busy machine may


def boot_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def pause(seconds=0.002):
    select.select([], [], [], seconds)


def wait_until(condition, what='the condition'):
    """Polls; the value of the condition once it is true."""
    end = boot_time() + PATIENCE
    while boot_time() < end:
        value = condition()
        if value:
            return value
        pause()
    raise AssertionError(f'{what} did not come true in {PATIENCE} s')


def state_of(pid):
    """As ps shows it: R, S, T ...; empty when there is no such process."""
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as stat:
            return stat.read().rsplit(')', 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ''


def is_alive(pid):
    """Whether the process runs; one that only waits to be collected does not."""
    return state_of(pid) not in ('', 'Z', 'X')


def parent_of(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as stat:
        return int(stat.read().rsplit(')', 1)[1].split()[1])


def only_child_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as children:
        only, = children.read().split()
    return int(only)


def family_of(pid):
    """The process and all its descendants."""
    parents = {}
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            parents[int(name)] = parent_of(name)
        except OSError:
            pass
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def kill_if_there(pid):
    """For a process of a test that failed."""
    if is_alive(pid):
        os.kill(pid, signal.SIGKILL)


def has_opened(pid, name):
    """Whether the process has a file of that name open."""
    try:
        return any(os.readlink(f'/proc/{pid}/fd/{fd}').endswith(name)
                   for fd in os.listdir(f'/proc/{pid}/fd'))
    except OSError:
        return False


def signals_as_in_a_shell():
    """Whoever runs the tests in the background has INT and QUIT ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


class Lock:
    """A running `trinco lock`. Its standard error is collected while it runs."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=signals_as_in_a_shell, **options)
        self.pid = self.process.pid
        self.said = ''
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self):
        for line in self.process.stderr:
            self.said += line

    def line(self):
        """The next line of the command's standard output, without its newline."""
        return self.process.stdout.readline().rstrip('\n')

    def hear(self, pattern):
        """Waits until it has said so."""
        wait_until(lambda: re.search(pattern, self.said), f'{pattern} in what it says')

    def let_go(self):
        """Ends the command of Scene.hold; the exit code."""
        self.process.stdin.close()
        return self.end()

    def end(self):
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code

    def signal(self, number):
        self.process.send_signal(number)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()
        self._reader.join(timeout=PATIENCE)
        self.process.stderr.close()


class Scene(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='trinco-lock-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.store = f'local:{self.folder}/x.db'
        (self.folder / 'none.toml').touch()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith('TRINCO_')}
        self.environment.update(TRINCO_CONFIG=f'{self.folder}/none.toml', TRINCO_LOCKS=self.store,
                                TRINCO_BREAKERS=self.store, TRINCO_BREAKERS_MIRROR='none')

    def words(self, name, *words):
        """The command line; options in front of '--', the command behind it."""
        return [PROGRAM, 'lock', name, *words]

    def start(self, name, *words, **options):
        return self.start_command(self.words(name, *words), **options)

    def start_command(self, command, **options):
        lock = Lock(command, env=self.environment, **options)
        self.addCleanup(lock.close)
        return lock

    def run_lock(self, name, *words, **options):
        return self.run_words(self.words(name, *words), **options)

    def run_words(self, words, **options):
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False,
                              env=self.environment, preexec_fn=signals_as_in_a_shell, **options)

    def hold(self, name, *options):
        """Holds the lock until let_go: its command has begun."""
        lock = self.start(name, *options, '--', 'sh', '-c', 'echo $$; exec cat')
        lock.command = int(lock.line())
        return lock

    def queue_up(self, name, *words, ahead):
        """Waits for a lock that is held; it is in its place when this returns."""
        lock = self.start(name, '--verbose', *words)
        wait_until(lambda: f'{ahead} ahead' in lock.said, f'the place of a waiter: {lock.said}')
        return lock

    def locks(self, *words):
        """What `trinco locks` answers."""
        return self.run_words([PROGRAM, 'locks', *words])

    def listed(self, name):
        """A lock as `trinco locks ls` lists it."""
        done = self.locks('ls', '-o', 'json')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        found = [lock for lock in json.loads(done.stdout)['locks'] if lock['name'] == name]
        return found[0] if found else {'holders': [], 'waiters': 0}

    def entries(self, name):
        """How many hold the lock or wait for it."""
        lock = self.listed(name)
        return len(lock['holders']) + (lock['waiters'] or 0)  # null: not known


def main():
    unittest.main(verbosity=1)
