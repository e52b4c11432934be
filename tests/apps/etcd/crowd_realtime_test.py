#!/usr/bin/env python3
"""Crowds of processes on one real etcd: semaphores, readers and writers, once, several names at a
time beside strangers that nest. Takes the paths of the program and of the child that takes all of
some locks."""

import collections
import json
import os
import random
import signal
import subprocess
import sys

CHILD = os.path.abspath(sys.argv.pop(2))

import cluster  # noqa: E402
from etcd_scene import PATIENCE, PROGRAM, EtcdScene, is_alive, main, wait_until  # noqa: E402

# Notes who is in, in one order: a line is written at once.
VISIT = ('echo "in $0 $TRINCO_TOKEN" >> "$1"; sleep "$2"; echo "out $0" >> "$1"')


class Crowd(EtcdScene):
    def setUp(self):
        super().setUp()
        self.log = self.folder / 'log'
        self.log.touch()

    def visit(self, who, seconds='0.05'):
        return ['sh', '-c', VISIT, who, str(self.log), seconds]

    def line_up(self, name, *words, ahead):
        """In its place in the queue when this returns."""
        one = self.start(name, *words)
        wait_until(lambda: len(self.etcd.keys(name + '/')) == ahead + 1, f'{ahead} ahead')
        return one

    def all_end(self, running, code=0):
        for one in running:
            self.assertEqual(code, one.end(), one.said)

    def lines(self):
        return [line.split() for line in self.log.read_text().splitlines()]

    def inside(self):
        """Who was in, after each line of the log."""
        now = []
        for line in self.lines():
            if line[0] == 'in':
                now.append(line[1])
            else:
                now.remove(line[1])
            yield list(now)


class Semaphores(Crowd):
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


class ReadersAndWriters(Crowd):
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


class Once(Crowd):
    def once(self, key, *command, options=()):
        process = subprocess.Popen([PROGRAM, 'once', key, '--ttl', '2s', *options, '--', *command],
                                   env=self.environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def record(self, key):
        done = self.run_program('records', 'show', key, '-o', 'json')
        return json.loads(done.stdout)['record'] if done.returncode == 0 else None

    def test_fifty_at_a_time_run_it_once(self):
        script = f'echo run >> {self.log}; sleep 0.3; echo "receipt $TRINCO_RUN_ID"'
        callers = [self.once('order/1', 'sh', '-c', script) for _ in range(50)]
        said = [one.communicate(timeout=PATIENCE) for one in callers]
        self.assertEqual([0] * 50, [one.returncode for one in callers], said)
        self.assertEqual(1, len(self.lines()), 'it ran more than once')
        receipts = collections.Counter(out for out, _ in said)
        self.assertEqual(1, len(receipts), receipts)
        self.assertRegex(next(iter(receipts)), r'\Areceipt [0-9a-f]{32}\n\Z')
        self.assertEqual('done', self.record('order/1')['state'])

    def test_an_owner_that_dies_in_the_middle(self):
        owner = self.once('order/2', 'sh', '-c', f'echo $$ >> {self.log}; exec sleep 60')
        wait_until(self.lines, 'the command runs')
        others = [self.once('order/2', 'sh', '-c', f'echo other >> {self.log}') for _ in range(5)]
        owner.kill()
        owner.communicate()
        for one in others:
            _, told = one.communicate(timeout=PATIENCE)
            self.assertEqual(79, one.returncode, told)
            self.assertIn('was interrupted', told)
            self.assertIn('trinco records resolve order/2', told)
        pid = int(self.lines()[0][0])
        wait_until(lambda: not is_alive(pid), 'its command ends with it')
        self.assertEqual(1, len(self.lines()), 'nobody runs it again')
        late = self.run_program('once', 'order/2', '--', 'true')
        self.assertEqual(79, late.returncode, late.stderr)
        resolved = self.run_words([PROGRAM, 'records', 'resolve', 'order/2', '--done', 'paid',
                                   '--confirm', 'order/2'])
        self.assertEqual(0, resolved.returncode, resolved.stderr)
        after = self.run_program('once', 'order/2', '--', 'false')
        self.assertEqual((0, 'paid'), (after.returncode, after.stdout.strip()), after.stderr)


class SeveralAtATime(Crowd):
    NAMES = ['a', 'b', 'c', 'd', 'e']

    def test_all_or_none_in_any_order_beside_strangers_that_nest(self):
        """Each takes all five in an order of its own, and makes five folders, which only one can;
        two take b and, inside of it, a, as scripts with etcdctl do."""
        ground = self.folder / 'ground'
        ground.mkdir()
        draw = random.Random(5)
        children = []
        for number in range(20):
            names = draw.sample(self.NAMES, len(self.NAMES))
            children.append(subprocess.Popen(
                [CHILD, self.store, '3', str(ground), *names], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True))
            self.addCleanup(lambda p=children[-1]: p.poll() is None and p.kill())
        inner = (f'mkdir {ground}/b {ground}/a && rmdir {ground}/a {ground}/b'
                 f' && echo n >> {self.log}')
        control = [cluster.find('etcdctl'), '--endpoints', self.etcd.nodes[0].address_and_port]
        nested = []
        for _ in range(2):
            words = [*control, 'lock', '--ttl=5', 'b', '--', *control, 'lock', '--ttl=5', 'a', '--',
                     'sh', '-c', inner]
            nested.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           text=True))
            self.addCleanup(lambda p=nested[-1]: p.poll() is None and p.send_signal(signal.SIGKILL))
        for one in children:
            out, errors = one.communicate(timeout=2 * PATIENCE)
            self.assertEqual((0, '3\n'), (one.returncode, out), errors)
        for one in nested:
            out, errors = one.communicate(timeout=2 * PATIENCE)
            self.assertEqual(0, one.returncode, errors)
        self.assertEqual(2, len(self.lines()))
        self.assertEqual([], os.listdir(ground))


if __name__ == '__main__':
    main()
