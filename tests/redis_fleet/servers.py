"""Real Redis servers for the fleet's proofs, and a client of a few lines to look at them with."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time

FLEETS = None  # the path of server_fleet


def find(name='redis-server'):
    """The program that the environment names, else of PATH, else of the cache of `make servers`."""
    named = os.environ.get('TRINCO_' + name.upper().replace('-', '_'))
    if named:
        return named
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    folders = os.environ.get('PATH', '') + ':' + os.path.join(cache, 'trinco/servers/bin')
    return shutil.which(name, path=folders) or shutil.which(name.replace('redis', 'valkey'),
                                                            path=folders)


class Refused(Exception):
    """An error reply."""


class Client:
    """One connection; a Unix socket's path, or (host, port)."""

    def __init__(self, to, timeout=10):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(to, str) else socket.AF_INET)
        self.socket.settimeout(timeout)
        self.socket.connect(to)
        self.lines = self.socket.makefile('rb')

    def send(self, *words):
        parts = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b'*%d\r\n' % len(parts)
                            + b''.join(b'$%d\r\n%s\r\n' % (len(p), p) for p in parts))

    def receive(self):
        line = self.lines.readline()
        if not line:
            raise ConnectionError('the server has closed the connection')
        kind, rest = line[:1], line[1:-2]
        if kind == b'-':
            raise Refused(rest.decode())
        if kind == b':':
            return int(rest)
        if kind == b'$':
            return None if rest == b'-1' else self.lines.read(int(rest) + 2)[:-2]
        if kind == b'*':
            return None if rest == b'-1' else [self.receive() for _ in range(int(rest))]
        return rest.decode()

    def call(self, *words):
        self.send(*words)
        return self.receive()

    def close(self):
        self.lines.close()
        self.socket.close()


class Server:
    """One server on a Unix socket, in a folder of its own."""

    def __init__(self, folder, *settings):
        self.folder = folder
        self.settings = list(settings)
        self.path = os.path.join(folder, 's')
        self.process = None
        self.client = None
        os.makedirs(folder, exist_ok=True)
        self.start()

    def start(self):
        self.launch()
        self.client = self.answering('PONG')

    def launch(self):
        """It answers a moment later."""
        words = [find(), '--port', '0', '--unixsocket', self.path, '--dir', self.folder,
                 '--save', '', '--appendonly', 'no', '--enable-debug-command', 'yes',
                 '--enable-protected-configs', 'yes',
                 '--logfile', os.path.join(self.folder, 'log')] + self.settings
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL)

    def answering(self, words):
        """A new client, as soon as its PING is answered with these words, or with an error that
        begins with them."""
        for _ in range(2000):
            try:
                client = Client(self.path)
                try:
                    said = client.call('PING')
                except Refused as error:
                    said = str(error)
                if said.startswith(words):
                    return client
                client.close()
            except OSError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError('the server does not run; see ' + self.folder)
            time.sleep(0.005)
        raise RuntimeError('the server does not answer "%s"' % words)

    def url(self, credentials=''):
        return 'redis+unix:%s%s' % ('//%s@' % credentials if credentials else '', self.path)

    def call(self, *words):
        return self.client.call(*words)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.client.close()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def dump(self):
        """The data as it is now, for a restart later."""
        self.call('SAVE')
        os.replace(os.path.join(self.folder, 'dump.rdb'), os.path.join(self.folder, 'older.rdb'))

    def restart(self, from_dump=False):
        self.place_dump(from_dump)
        self.start()

    def place_dump(self, wanted):
        """Where a server that starts looks for its data."""
        at = os.path.join(self.folder, 'dump.rdb')
        if wanted:
            shutil.copy(os.path.join(self.folder, 'older.rdb'), at)
        elif os.path.exists(at):
            os.remove(at)

    def commands(self):
        """How often which command ran, but for those of ours."""
        found = {}
        for line in self.call('INFO', 'commandstats').decode().splitlines():
            if line.startswith('cmdstat_'):
                name, rest = line[len('cmdstat_'):].split(':', 1)
                found[name] = int(rest.split(',', 1)[0].split('=')[1])
        return found

    def keys(self):
        return [key.decode() for key in self.call('KEYS', '*')]


class ServerFleet:
    """Servers that belong together, by server_fleet: `kind` is sentinel or cluster."""

    def __init__(self, kind):
        self.process = subprocess.Popen([FLEETS, kind, find()], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.told = self.listen()
        self.url = self.told['url']

    def listen(self):
        line = self.process.stdout.readline()
        told = json.loads(line) if line else {'error': 'it has ended'}
        if 'error' in told:
            raise RuntimeError('server_fleet: ' + told['error'])
        return told

    def do(self, verb, name):
        """kill or start."""
        self.process.stdin.write('%s %s\n' % (verb, name))
        self.process.stdin.flush()
        self.told = self.listen()

    def client(self, name):
        found = next(p for p in self.told['processes'] if p['name'] == name)
        return Client(found['socket'])

    def port(self, name):
        return next(p for p in self.told['processes'] if p['name'] == name)['port']

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
