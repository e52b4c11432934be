"""Real servers for the tests of the program: each in a folder of its own, on a free port of the
loopback, without persistence unless asked for. Nothing is left when a test ends."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

PAUSE = threading.Event()
PATIENCE = 30


def find_server():
    """The path of a Redis or Valkey: TRINCO_REDIS_SERVER, else of PATH, else what `make servers`
    has fetched; None when there is none."""
    named = os.environ.get('TRINCO_REDIS_SERVER')
    if named:
        return named
    cache = pathlib.Path(os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache')
    for name in ('redis-server', 'valkey-server'):
        found = shutil.which(name) or shutil.which(name, path=str(cache / 'trinco/servers/bin'))
        if found:
            return found
    return None


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


class Server:
    """One process of a server. `settings` are its options: maxmemory_policy='allkeys-lru'."""

    def __init__(self, folder, program, **settings):
        self.program = program
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.port = free_port()
        self.settings = {'save': '', **settings}
        self.process = None
        self.password = None
        self.start()

    @property
    def url(self):
        return f'redis://127.0.0.1:{self.port}'

    def start(self):
        words = [self.program, '--port', str(self.port), '--bind', '127.0.0.1',
                 '--dir', str(self.folder), '--logfile', str(self.folder / 'log')]
        for key, value in self.settings.items():
            words += ['--' + key.replace('_', '-'), *([value] if isinstance(value, str)
                                                      else map(str, value))]
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self.command('PING')
                return
            except ValueError as error:  # also NOAUTH is an answer
                if 'LOADING' not in str(error):
                    return
            except OSError:
                pass
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError((self.folder / 'log').read_text())
            PAUSE.wait(0.01)

    def command(self, *words):
        """The reply as Python has it; errors are raised as ValueError."""
        with socket.create_connection(('127.0.0.1', self.port), PATIENCE) as one:
            with one.makefile('rwb') as stream:
                if self.password:
                    self._send(stream, ('AUTH', self.password))
                    self._reply(stream)
                self._send(stream, words)
                return self._reply(stream)

    @staticmethod
    def _send(stream, words):
        stream.write(b'*%d\r\n' % len(words))
        for word in words:
            data = str(word).encode()
            stream.write(b'$%d\r\n%s\r\n' % (len(data), data))
        stream.flush()

    def _reply(self, stream):
        line = stream.readline().rstrip(b'\r\n')
        kind, rest = line[:1], line[1:]
        if kind == b'+':
            return rest.decode()
        if kind == b'-':
            raise ValueError(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            if int(rest) < 0:
                return None
            return stream.read(int(rest) + 2)[:-2].decode(errors='replace')
        if kind == b'*':
            return [self._reply(stream) for _ in range(int(rest))]
        raise OSError(f'no reply: {line!r}')

    def kill(self):
        self.process.kill()
        self.process.wait()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process.poll() is None:
            self.go_on()
            self.kill()
