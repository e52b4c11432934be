"""A program, or an interactive shell, under a pseudo terminal."""

import os
import pty
import re
import select
import signal
import time

import supervised


class Terminal:
    """Runs the words as the leader of a session with this terminal."""

    def __init__(self, words, environment):
        self.seen = ''
        self.everything = ''
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(words[0], words, environment)

    def hang_up(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def close(self):
        self.hang_up()
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern):
        """Reads until the pattern is there, and forgets what is before its end."""
        end = time.monotonic() + supervised.LIMIT_S
        while True:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if time.monotonic() > end or not self.read():
                raise AssertionError(f'{pattern!r} did not come; seen: {self.seen!r}')

    def read(self):
        """False at the end."""
        if not select.select([self.fd], [], [], 0.1)[0]:
            return True
        try:
            text = os.read(self.fd, 65536).decode(errors='replace')
        except OSError:     # how a terminal says that nobody has it open
            return False
        self.seen += text
        self.everything += text
        return True

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def wait(self):
        """The status of the program, as of waitpid."""
        def ended():
            self.read()
            return os.waitpid(self.pid, os.WNOHANG)
        return supervised.until(lambda: (lambda end: end if end[0] else None)(ended()),
                                'the end of the program')[1]


class Shell(Terminal):
    """bash as people use it: interactive, with job control."""
    PROMPT = 'ready> '

    def __init__(self, environment):
        environment = dict(environment, PS1=self.PROMPT, TERM='dumb', HISTFILE='/dev/null')
        super().__init__(['bash', '--norc', '--noprofile', '--noediting', '-i'], environment)
        self.prompt()

    def prompt(self):
        self.expect(self.PROMPT)

    def run(self, line):
        """Types a line and forgets its echo; what it prints is to be expected then."""
        self.type(line + '\n')
        self.expect(r'\n')
