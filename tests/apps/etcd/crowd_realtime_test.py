#!/usr/bin/env python3
"""Crowds of processes on one real etcd: semaphores, readers and writers, once, several names at a
time beside strangers that nest. Takes the paths of the program and of the child that takes all of
some locks."""

import os
import sys

CHILD = os.path.abspath(sys.argv.pop(2))

import cluster  # noqa: E402
from etcd_scene import EtcdScene, main, wait_until  # noqa: E402
from crowds import Crowd, Once, SeveralAtATime  # noqa: E402


class CrowdOnEtcd(Crowd, EtcdScene):
    def line_up(self, name, *words, ahead):
        """In its place in the queue when this returns."""
        one = self.start(name, *words)
        wait_until(lambda: len(self.etcd.keys(name + '/')) == ahead + 1, f'{ahead} ahead')
        return one


class Semaphores(CrowdOnEtcd):
    def test_never_more_than_n_and_whoever_leaves_lets_the_next_in(self):
        held = [self.hold('pool', '-n', '3') for _ in range(3)]
        waiters = [self.line_up('pool', '-n', '3', '--', *self.visit(f'w{i}'), ahead=3 + i)
                   for i in range(4)]
        self.assertEqual([], self.lines())
        # The one in the middle goes.
        self.assertEqual(0, held[1].let_go())
        self.all_end(waiters)
        for one in (held[0], held[2]):
            self.assertEqual(0, one.let_go())
        order = [line[1] for line in self.lines() if line[0] == 'in']
        self.assertEqual(['w0', 'w1', 'w2', 'w3'], order)
        crowd = [self.start('pool', '-n', '3', '--', *self.visit(f'c{i}')) for i in range(12)]
        self.all_end(crowd)
        most = max(len(now) for now in self.inside())
        self.assertEqual(3, most, 'never more, and not one after another')

    def test_another_number_is_refused(self):
        held = self.hold('pool', '-n', '3')
        sentence = self.mistake('lock', 'pool', '-n', '2', '--', 'true', code=64)
        self.assertIn('-n 3', sentence)
        self.assertEqual(0, held.let_go())


class ReadersAndWriters(CrowdOnEtcd):
    def test_nobody_starves(self):
        """While readers keep coming a writer has its turn, and they theirs behind it."""
        first = self.hold('book', '--shared')
        second = self.hold('book', '--shared')
        writer = self.line_up('book', '--', *self.visit('writer'), ahead=2)
        readers = [self.line_up('book', '--shared', '--', *self.visit(f'r{i}', '0.3'),
                                 ahead=3 + i) for i in range(3)]
        second_writer = self.line_up('book', '--', *self.visit('writer2'), ahead=6)
        self.assertEqual([], self.lines(), 'a reader has passed a waiting writer')
        for one in (first, second):
            self.assertEqual(0, one.let_go())
        self.all_end([writer, *readers, second_writer])
        order = [line[1] for line in self.lines() if line[0] == 'in']
        self.assertEqual('writer', order[0])
        self.assertEqual({'r0', 'r1', 'r2'}, set(order[1:4]))
        self.assertEqual('writer2', order[4])
        for now in self.inside():
            if any(who.startswith('writer') for who in now):
                self.assertEqual(1, len(now), now)
        self.assertEqual(3, max(len(now) for now in self.inside()), 'readers share it')


class OnceOnEtcd(Once, EtcdScene):
    pass


class SeveralOnEtcd(SeveralAtATime, EtcdScene):
    CHILD = CHILD

    def nest(self, outer, inner, script):
        control = [cluster.find('etcdctl'), '--endpoints', self.etcd.nodes[0].address_and_port,
                   'lock', '--ttl=5']
        return [*control, outer, '--', *control, inner, '--', 'sh', '-c', script]


if __name__ == '__main__':
    main()
