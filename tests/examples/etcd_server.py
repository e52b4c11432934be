"""A real etcd for a test of a program: one node in a folder of its own, on free ports of the
loopback."""

import os
import pathlib
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

PATIENCE = 60
PAUSE = threading.Event()
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def find():
    """The path of etcd: TRINCO_ETCD_SERVER, else of PATH, else what `make servers` has fetched;
    None when there is none."""
    cache = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return (os.environ.get('TRINCO_ETCD_SERVER') or shutil.which('etcd')
            or shutil.which('etcd', path=str(pathlib.Path(cache) / 'trinco/servers/bin')))


def free_ports():
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(('127.0.0.1', 0))
        return one.getsockname()[1], other.getsockname()[1]


class Etcd:
    """Runs until stop(). It elects itself fast, so that leases may be as short as a second."""

    def __init__(self, folder, program):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.process = None
        # A port that somebody took between being looked for and being used costs another attempt.
        for attempt in range(3):
            if self._answers(program, self.folder / str(attempt)):
                return
        raise RuntimeError('etcd: ' + (self.folder / 'log').read_text()[-2000:])

    def _answers(self, program, data):
        client, peer = free_ports()
        self.url = f'etcd://127.0.0.1:{client}'
        here, there = f'http://127.0.0.1:{client}', f'http://127.0.0.1:{peer}'
        with open(self.folder / 'log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [program, '--name=n', f'--data-dir={data}', f'--listen-client-urls={here}',
                 f'--advertise-client-urls={here}', f'--listen-peer-urls={there}',
                 f'--initial-advertise-peer-urls={there}', f'--initial-cluster=n={there}',
                 '--heartbeat-interval=20', '--election-timeout=200'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            try:
                with DIRECT.open(here + '/health', timeout=5) as answer:
                    if b'"true"' in answer.read():
                        return True
            except (OSError, urllib.error.URLError):
                pass
            PAUSE.wait(0.02)
        self.stop()
        return False

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
