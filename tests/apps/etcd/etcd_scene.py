"""What the tests of the program on etcd share: the scene of `trinco lock`, on a cluster of their
own, which must be empty of theirs in the end."""

import os
import pathlib
import re
import sys
import tempfile
import unittest

APPS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(APPS), str(APPS / 'lock'), str(APPS / 'once')]
import cluster
from at_once import main
from cluster import Cluster, wait_until
from scene import PATIENCE, PROGRAM, Scene, boot_time, is_alive, pause

__all__ = ['PATIENCE', 'PROGRAM', 'Cluster', 'EtcdScene', 'boot_time', 'cluster', 'is_alive',
           'main', 'pause', 'wait_until']


@unittest.skipUnless(cluster.find() and cluster.find('etcdctl'),
                     'there is no etcd; try `make servers`')
class EtcdScene(Scene):
    """One node for all tests of the class, unless a test makes a cluster of its own."""
    NODES = 1
    MORE = ()
    TTL = 2  # seconds; the least that a server of usual settings grants

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix='trinco-etcd-'))
        cls.place = pathlib.Path(folder)
        cls.etcd = cls.make_cluster()
        if cls.etcd:
            cls.addClassCleanup(cls.etcd.end)

    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'etcd', nodes=cls.NODES, more=cls.MORE)

    def setUp(self):
        super().setUp()
        if self.etcd:
            self.use(self.etcd.url)
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

    def assert_nothing_left(self):
        """Within the longest TTL that tests use, and what the server takes beyond it."""
        def ours():
            return [key for key in self.etcd.keys() if not key.startswith('trinco:records/')]
        wait_until(lambda: not ours(), 'the end of all entries: ' + ' '.join(ours()))
        wait_until(lambda: not self.short_leases(), 'the end of all leases of sessions')
        wait_until(lambda: not self.programs(), 'the end of all programs')

    def programs(self):
        """Processes of ours that know this cluster: with each go its threads and descriptors."""
        ours = {PROGRAM, PROGRAM + '-fleet'}
        ports = [f':{port}'.encode() for port in re.findall(r':(\d+)', self.etcd.url)]
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

    def short_leases(self):
        """Those of sessions: records are kept for a day."""
        said = [self.etcd.must('lease', 'timetolive', lease) for lease in self.etcd.leases()]
        ttls = [re.search(r'granted with TTL\((\d+)s\)', words) for words in said]
        return [found for found in ttls if found and int(found.group(1)) < 600]
