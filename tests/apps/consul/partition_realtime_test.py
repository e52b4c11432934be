#!/usr/bin/env python3
"""`trinco lock` on three servers of Consul, each in a network of its own, of which one is cut off
from the others together with who is on its side. Takes the program's path."""

import concurrent.futures
import sys
import unittest

from consul_cluster import Cluster, Networks, NoNetworks
from consul_scene import LOCK_DELAY, PROGRAM, TTL, boot_time, is_alive, main, wait_until
from writers import Writers

ELECTION = 5  # s, that it may take on a machine with much to do


class Fleet(Writers):
    """Three servers for all tests; clients run beside one of them, and ask it alone."""
    SERVERS = 3

    @classmethod
    def make_cluster(cls):
        try:
            cls.networks = Networks(['n0', 'n1', 'n2'])
        except NoNetworks as error:
            print('SKIPPED: no right to make network namespaces, so nobody is cut off here:', error,
                  file=sys.stderr)
            raise unittest.SkipTest('no network namespaces') from error
        cls.addClassCleanup(cls.networks.end)
        return Cluster(cls.place / 'consul', servers=3, networks=cls.networks)

    def setUp(self):
        super().setUp()
        self.beside = None

    def go_beside(self, node):
        self.beside = node
        self.use(self.consul.url_of(node))

    def words(self, name, *words):
        return [*(self.beside.inside if self.beside else []), *super().words(name, *words)]

    def run_program(self, *words, **options):
        return self.run_words([*(self.beside.inside if self.beside else []), PROGRAM, *words],
                              **options)

    def others(self, node):
        return [one for one in self.consul.nodes if one is not node]

    def heal(self, node):
        self.networks.restore(node.name)
        for one in self.consul.nodes:
            self.consul.wait_for(one)


class CutOff(Fleet):
    def test_the_side_of_the_minority_is_told_in_time_and_grants_nothing(self):
        leader = self.consul.leader()
        self.go_beside(leader)
        holder = self.begin_writing('job', 'first')
        token = self.granted(holder)
        self.go_beside(self.others(leader)[0])
        waiter = self.begin_writing('job', 'second')
        wait_until(lambda: waiter.said, 'the second waits')
        cut = boot_time()
        self.networks.cut(leader.name)
        self.addCleanup(self.heal, leader)
        self.assertEqual(76, holder.end(), holder.said)
        self.assertFalse(is_alive(holder.command))
        # A leader that is cut off renews until it notices, for less than an election.
        self.assertLess(self.times(holder)[-1] - cut, TTL + ELECTION, 'nobody told it')
        # Nobody there gets anything, what is free no more than what was held.
        self.go_beside(leader)

        def ask(name):
            begun = boot_time()
            done = self.run_lock(name, '--no-wait', '--', 'true')
            self.assertIn(done.returncode, (69, 75), done.stderr)
            self.assertLess(boot_time() - begun, 15)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(ask, ('job', 'free')))
        # And the others go on: a new leader begins each session anew.
        self.assertGreater(self.granted(waiter), token)
        second = self.writes(waiter)
        first = self.times(holder)[-1]
        print(f'cut off: the first stopped {first - cut:.2f} s after the cut, the second began '
              f'after {second - cut:.2f} s')
        self.assertLess(first, second, 'both wrote at a time')
        self.assertLess(second - cut, 2 * TTL + LOCK_DELAY + 2 * ELECTION)
        self.end_of(waiter)


if __name__ == '__main__':
    main()
