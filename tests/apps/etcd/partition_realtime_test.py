#!/usr/bin/env python3
"""`trinco lock` on three nodes of etcd, of which one is killed, paused, or cut off from the others
together with who is on its side. Takes the program's path."""

import concurrent.futures
import os
import signal
import sys
import unittest

from cluster import Cluster, Networks, NoNetworks
from etcd_scene import PROGRAM, EtcdScene, boot_time, is_alive, main, wait_until

TTL = 4
ELECTION = 1  # s, etcd's own choice
# Appends the boot time as fast as it can, until it is ended. A TERM does not impress it.
WRITER = '''
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
print(os.getpid(), flush=True)
while True:
    os.write(out, b'%.6f\\n' % time.clock_gettime(time.CLOCK_BOOTTIME))
    time.sleep(0.001)
'''


class Fleet(EtcdScene):
    """Three nodes, each in a network of its own, for all tests; clients run beside a node."""
    NODES = 3

    @classmethod
    def make_cluster(cls):
        try:
            cls.networks = Networks(['n0', 'n1', 'n2'])
        except NoNetworks as error:
            print('SKIPPED: no right to make network namespaces, so nobody is cut off here:', error,
                  file=sys.stderr)
            raise unittest.SkipTest('no network namespaces') from error
        cls.addClassCleanup(cls.networks.end)
        return Cluster(cls.place / 'etcd', nodes=3, networks=cls.networks)

    def setUp(self):
        super().setUp()
        self.beside = None

    def words(self, name, *words):
        return [*(self.beside.inside if self.beside else []), *super().words(name, *words)]

    def run_program(self, *words, **options):
        return self.run_words([*(self.beside.inside if self.beside else []), PROGRAM, *words],
                              **options)

    def locks(self, *words):
        return self.run_program('locks', *words)

    def others(self, node):
        return [one for one in self.etcd.nodes if one is not node]

    def begin_writing(self, node, name, file):
        self.beside = node
        lock = self.start(name, '--ttl', f'{TTL}s', '--', sys.executable, '-c', WRITER,
                          str(self.folder / file))
        lock.written = self.folder / file
        return lock

    def times(self, file):
        path = self.folder / file
        text = path.read_text() if path.exists() else ''
        return [float(line) for line in text.splitlines(keepends=True) if line.endswith('\n')]

    def waits(self, lock, many):
        wait_until(lambda: len(self.etcd.keys('job/')) == many, f'{many} in the queue: {lock.said}')

    def heal(self, node):
        self.networks.restore(node.name)
        if node.process.poll() is not None:
            self.etcd.start(node)
        self.etcd.go_on(node)
        for one in self.etcd.nodes:
            self.etcd.wait_for(one)


class CutOff(Fleet):
    def test_the_side_of_the_minority_is_told_in_time_and_grants_nothing(self):
        leader = self.etcd.leader()
        holder = self.begin_writing(leader, 'job', 'first')
        command = int(holder.line())
        waiter = self.begin_writing(self.others(leader)[0], 'job', 'second')
        self.waits(waiter, 2)
        cut = boot_time()
        self.networks.cut(leader.name)
        self.addCleanup(self.heal, leader)
        self.assertEqual(76, holder.end(), holder.said)
        self.assertFalse(is_alive(command))
        self.assertIn('is about to be lost', holder.said)
        # A leader that is cut off renews leases until it notices, for up to two election timeouts;
        # the next one gives each lease its whole TTL and one more timeout.
        self.assertLess(self.times('first')[-1] - cut, TTL + 2 * ELECTION, 'nobody told it')
        # Nobody there gets anything, what is free no more than what was held.
        self.beside = leader

        def ask(name):
            begun = boot_time()
            done = self.run_lock(name, '--no-wait', '--', 'true')
            self.assertIn(done.returncode, (69, 75), done.stderr)
            self.assertLess(boot_time() - begun, 10)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(ask, ('job', 'free')))
        # And the others go on: a new leader begins the lease of the dead anew.
        waiter.line()
        wait_until(lambda: self.times('second'), 'the second writes')
        first, second = self.times('first')[-1], self.times('second')[0]
        print(f'cut off: the first stopped {first - cut:.2f} s after the cut, the second began '
              f'after {second - cut:.2f} s')
        self.assertLess(first, second, 'both wrote at a time')
        self.assertLess(second - cut, 3 * TTL + 5)
        self.networks.restore(leader.name)
        waiter.signal(signal.SIGKILL)
        waiter.end()

    @unittest.skipUnless(os.environ.get('TRINCO_ETCD_ALL'), 'takes long: TRINCO_ETCD_ALL=1')
    def test_a_client_alone_is_cut_off(self):
        """Beside a follower, whose side is the smaller one, too."""
        node = self.others(self.etcd.leader())[0]
        holder = self.begin_writing(node, 'job', 'alone')
        holder.line()
        self.networks.cut(node.name)
        self.addCleanup(self.heal, node)
        taken = [0]

        def is_free():
            looked = boot_time()
            if not self.etcd.must('get', 'job/', '--prefix', '--keys-only', at=self.others(node)):
                return True
            taken.append(looked)
            return False
        wait_until(is_free, 'the lock is free for the others')
        self.assertEqual(76, holder.end(), holder.said)
        self.assertLess(self.times('alone')[-1], taken[-1], 'it wrote when it may have been free')


class LossOfTheLeader(Fleet):
    def lose(self, way, back):
        """Holder and three waiters beside one that stays; the leader goes in this way, and comes
        back. Who holds holds on, and the others follow in their order."""
        leader = self.etcd.leader()
        self.beside = self.others(leader)[0]
        log = self.folder / 'order'
        log.touch()
        holder = self.start('job', '--ttl', f'{TTL}s', '--', 'sh', '-c', 'echo $$; exec cat')
        command = int(holder.line())
        waiters = []
        for number in range(3):
            waiters.append(self.start('job', '--ttl', f'{TTL}s', '--', 'sh', '-c',
                                      f'echo {number} >> {log}; sleep 0.1'))
            self.waits(waiters[-1], 2 + number)
        before = self.etcd.keys('job/')
        self.addCleanup(self.heal, leader)
        way(leader)
        begun = boot_time()
        # Longer than the lease would last by itself.
        wait_until(lambda: boot_time() - begun > TTL + 1, 'its time')
        self.assertTrue(is_alive(command), holder.said)
        def queue():
            return self.etcd.ctl('get', 'job/', '--prefix', '--keys-only',
                                 at=self.others(leader)).stdout.split()
        self.assertEqual(before, wait_until(queue, 'an answer of the others'))
        self.assertEqual('', log.read_text(), 'somebody was granted')
        self.assertEqual(0, holder.let_go(), holder.said)
        for one in waiters:
            self.assertEqual(0, one.end(), one.said)
        self.assertEqual('0\n1\n2\n', log.read_text())
        self.assertEqual('', holder.said)
        back(leader)

    @unittest.skipUnless(os.environ.get('TRINCO_ETCD_ALL'), 'takes long: TRINCO_ETCD_ALL=1')
    def test_killed(self):
        self.lose(self.etcd.kill, self.etcd.start)

    @unittest.skipUnless(os.environ.get('TRINCO_ETCD_ALL'), 'takes long: TRINCO_ETCD_ALL=1')
    def test_paused(self):
        self.lose(self.etcd.pause, self.etcd.go_on)

    def test_cut_off(self):
        self.lose(lambda node: self.networks.cut(node.name),
                  lambda node: self.networks.restore(node.name))


if __name__ == '__main__':
    main()
