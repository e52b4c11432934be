"""What the tests of the program on Consul share: the scene of `trinco lock`, on servers of their
own, which must be empty of theirs in the end, and Consul's own `consul lock` beside it."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

APPS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(APPS), str(APPS / 'lock'), str(APPS / 'once')]
import consul_cluster
from at_once import main
from consul_cluster import Cluster, wait_until
from scene import PATIENCE, PROGRAM, Lock, Scene, boot_time, is_alive, pause

__all__ = ['LOCK_DELAY', 'PATIENCE', 'PROGRAM', 'TTL', 'Cluster', 'ConsulScene', 'GoClient', 'Lock',
           'boot_time', 'consul_cluster', 'is_alive', 'main', 'pause', 'wait_until']

TTL = 10  # seconds; the least that a server of usual settings grants
LOCK_DELAY = 5  # seconds, of our sessions


class GoClient:
    """The program of tests/store/consul/go, which says what it understands."""

    def __init__(self, cluster, ttl=TTL):
        self.process = subprocess.Popen(
            [consul_cluster.find_go_client(), cluster.running()[0].address_and_port, str(ttl)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, *words):
        self.process.stdin.write(' '.join(str(word) for word in words) + '\n')
        self.process.stdin.flush()

    def line(self):
        """What some contender says next, with its name."""
        return self.process.stdout.readline().rstrip('\n')

    def ask(self, *words):
        self.send(*words)
        return self.line()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """All its sessions end."""
        self.process.stdin.close()
        try:
            self.process.wait(PATIENCE)
        finally:
            self.kill()
            self.process.stdout.close()


@unittest.skipUnless(consul_cluster.find(), 'there is no Consul; try `make servers`')
class ConsulScene(Scene):
    """One server for all tests of the class, unless a test makes a cluster of its own."""
    SERVERS = 1

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix='trinco-consul-'))
        cls.place = pathlib.Path(folder)
        cls.consul = cls.make_cluster()
        if cls.consul:
            cls.addClassCleanup(cls.consul.end)

    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', servers=cls.SERVERS)

    def setUp(self):
        super().setUp()
        if self.consul:
            self.use(self.consul.url)
            self.addCleanup(self.assert_nothing_left)

    def use(self, url):
        self.store = url
        self.environment['TRINCO_LOCKS'] = url

    def run_program(self, *words, **options):
        return self.run_words([PROGRAM, *words], **options)

    def mistake(self, *words, code, **options):
        """The one sentence that answers a mistake, without "trinco: "."""
        done = self.run_program(*words, **options)
        self.assertEqual((code, ''), (done.returncode, done.stdout), (words, done.stderr))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return done.stderr[len('trinco: '):-1]

    # Consul's own program.
    def consul_words(self, name, *words):
        """`consul lock`: options in front of '--', the command behind it."""
        command = words.index('--')
        return [self.consul.program, 'lock', *words[:command], name, *words[command + 1:]]

    def start_consul(self, name, *words):
        lock = Lock(self.consul_words(name, *words), env=self.consul.environment())
        self.addCleanup(lock.close)
        return lock

    def hold_by_consul(self, name, *options):
        """Holds the lock until let_go: its command has begun."""
        lock = self.start_consul(name, '-pass-stdin', *options, '--', 'echo $$; exec cat')
        lock.command = int(lock.line())
        return lock

    def go(self, **options):
        if not consul_cluster.find_go_client():
            self.skipTest("Consul's client of Go was not built")
        client = GoClient(self.consul, **options)
        self.addCleanup(client.end)
        return client

    def wait_for_lock(self, name, *words):
        """Waits for a lock that is held: it has said so when this returns."""
        lock = self.start(name, '--verbose', *words)
        wait_until(lambda: lock.said, 'what a waiter says')
        return lock

    def holder_of(self, name):
        """The session that holds the mutex; None when nobody does."""
        row = self.consul.key(f'{name}/.lock')
        return row and row.get('Session')

    def assert_nothing_left(self):
        """What is left of other programs, sessions that end by their TTL, is not ours."""
        def ours():
            return [key for key in self.consul.keys() if not key.startswith('trinco:records/')]
        wait_until(lambda: not ours(), 'the end of all entries: ' + ' '.join(ours()))
        try:
            wait_until(lambda: not self.consul.sessions(), 'the end of all sessions')
        except AssertionError as error:
            raise AssertionError(f'{error}: {self.consul.sessions()}') from error
        wait_until(lambda: not self.programs(), 'the end of all programs')

    def programs(self):
        """Processes of ours that know this cluster: with each go its threads and descriptors."""
        ours = {PROGRAM, PROGRAM + '-fleet'}
        ports = [f':{port}'.encode() for port in re.findall(r':(\d+)', self.consul.url)]
        found = []
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                if os.readlink(folder / 'exe') not in ours:
                    continue
                said = (folder / 'cmdline').read_bytes() + (folder / 'environ').read_bytes()
            except OSError:  # it has ended meanwhile
                continue
            if any(port in said for port in ports):
                found.append(folder.name)
        return found
