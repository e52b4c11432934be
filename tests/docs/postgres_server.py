"""A real PostgreSQL for a test, in a folder of its own, on a free port of the loopback."""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import threading
import time

PROGRAMS = ('postgres', 'initdb', 'psql')
PATIENCE = 60
PAUSE = threading.Event()


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def cache():
    home = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return pathlib.Path(home) / 'trinco/servers/postgres'


def find():
    """The folder with the programs: the one that TRINCO_POSTGRES names, else where PATH, Debian's
    packages, or `make servers` have them; None when there is none."""
    found = shutil.which('postgres')
    packages = sorted(glob.glob('/usr/lib/postgresql/*/bin'), reverse=True)
    fetched = glob.glob(f'{cache()}/usr/lib/postgresql/*/bin')
    for folder in [os.environ.get('TRINCO_POSTGRES'),
                   found and os.path.dirname(os.path.realpath(found)), *packages, *fetched]:
        if folder and all(os.access(os.path.join(folder, name), os.X_OK) for name in PROGRAMS):
            return pathlib.Path(folder)
    return None


class Postgres:
    """Runs until stop(). PostgreSQL refuses to run as root, who therefore starts it as nobody."""

    def __init__(self, folder, programs):
        self.folder = pathlib.Path(folder)
        self.programs = programs
        self.process = None
        self.port = 0
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith('PG')}
        self.environment.update(LC_ALL='C', TZ='UTC')
        self.as_user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam('nobody')
            self.as_user = dict(user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[])
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.use_fetched()
        self.start()

    def use_fetched(self):
        """Those of the cache need their libraries; and root's cache is not for nobody to read."""
        if cache() not in self.programs.parents:
            return
        root = cache()
        if self.as_user:
            root = self.folder / 'programs'
            shutil.copytree(cache(), root, symlinks=True)
            self.programs = root / self.programs.relative_to(cache())
        libraries = {str(path.parent) for path in root.rglob('*.so*')}
        self.environment['LD_LIBRARY_PATH'] = ':'.join(sorted(libraries))

    def words(self, name, *more):
        return [str(self.programs / name), *more]

    def how(self, **more):
        return dict(self.as_user, cwd=self.folder, env=self.environment, text=True,
                    stdin=subprocess.DEVNULL, **more)

    def start(self):
        done = subprocess.run(
            self.words('initdb', '-D', 'data', '-U', 'trinco', '--auth=trust', '--no-sync',
                       '--locale=C', '--encoding=UTF8'),
            **self.how(stdout=subprocess.PIPE, stderr=subprocess.STDOUT), check=False)
        if done.returncode != 0:
            raise RuntimeError('initdb: ' + done.stdout)
        # A port that somebody took between being looked for and being used costs another attempt.
        for _ in range(3):
            if self.answers_at(free_port()):
                return
        raise RuntimeError('PostgreSQL: ' + (self.folder / 'log').read_text())

    def answers_at(self, port):
        self.port = port
        settings = {'listen_addresses': '127.0.0.1', 'port': port, 'unix_socket_directories': '',
                    'fsync': 'off', 'jit': 'off', 'logging_collector': 'off'}
        with open(self.folder / 'log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                self.words('postgres', '-D', 'data',
                           *[f'--{name}={value}' for name, value in settings.items()]),
                **self.how(stdout=log, stderr=log))
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            if self.psql('SELECT 1;').returncode == 0:
                return True
            if time.monotonic() > end:
                self.stop()
            PAUSE.wait(0.05)
        return False

    def client(self, variables=None):
        """A running psql, to which statements are written."""
        given = [f'--set={name}={value}' for name, value in (variables or {}).items()]
        how = self.how(stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        how['stdin'] = subprocess.PIPE
        return subprocess.Popen(
            self.words('psql', '-X', '-A', '-t', '-h', '127.0.0.1', '-p', str(self.port),
                       '-U', 'trinco', '-d', 'postgres', *given), **how)

    def psql(self, text, **variables):
        """The finished process; what it printed in `stdout`, errors too."""
        client = self.client(variables)
        out, _ = client.communicate(text, timeout=PATIENCE)
        return subprocess.CompletedProcess(client.args, client.returncode, out)

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGINT)  # at once, without waiting for clients
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
