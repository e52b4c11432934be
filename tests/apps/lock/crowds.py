"""Crowds of processes on the locks of a fleet, whichever store keeps them: mixins for a Scene with
TTL, the least that a server of usual settings grants, in seconds."""

import collections
import json
import os
import random
import subprocess

from scene import PATIENCE, PROGRAM, is_alive, wait_until

# Notes who is in, in one order: a line is written at once.
VISIT = ('echo "in $0 $TRINCO_TOKEN" >> "$1"; sleep "$2"; echo "out $0" >> "$1"')


class Crowd:
    def setUp(self):
        super().setUp()
        self.log = self.folder / 'log'
        self.log.touch()

    def visit(self, who, seconds='0.05'):
        return ['sh', '-c', VISIT, who, str(self.log), seconds]

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


class Once(Crowd):
    def once(self, key, *command):
        words = [PROGRAM, 'once', key, '--ttl', f'{self.TTL}s', '--', *command]
        process = subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL,
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
            _, told = one.communicate(timeout=2 * PATIENCE)
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
    """`CHILD`: the program of all_child.cpp."""
    NAMES = ['a', 'b', 'c', 'd', 'e']

    def test_all_or_none_in_any_order_beside_strangers_that_nest(self):
        """Each takes all five in an order of its own, and makes five folders, which only one can;
        two take b and, inside of it, a, as scripts with the store's own program do: nest() has its
        words."""
        ground = self.folder / 'ground'
        ground.mkdir()
        draw = random.Random(5)
        children = []
        for _ in range(20):
            names = draw.sample(self.NAMES, len(self.NAMES))
            children.append(subprocess.Popen(
                [self.CHILD, self.store, str(max(5, self.TTL)), '3', str(ground), *names],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            self.addCleanup(lambda p=children[-1]: p.poll() is None and p.kill())
        inner = (f'mkdir {ground}/b {ground}/a && rmdir {ground}/a {ground}/b'
                 f' && echo n >> {self.log}')
        nested = []
        for _ in range(2):
            nested.append(subprocess.Popen(self.nest('b', 'a', inner), stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True))
            self.addCleanup(lambda p=nested[-1]: p.poll() is None and p.kill())
        for one in children:
            out, errors = one.communicate(timeout=2 * PATIENCE)
            self.assertEqual((0, '3\n'), (one.returncode, out), errors)
        for one in nested:
            out, errors = one.communicate(timeout=2 * PATIENCE)
            self.assertEqual(0, one.returncode, errors)
        self.assertEqual(2, len(self.lines()))
        self.assertEqual([], os.listdir(ground))
