#!/usr/bin/env python3
"""One at a time, from many processes: a counter that is read, thought about and written back, with
and without holders that are killed."""

import os
import random
import signal

import scene
from scene import Scene, is_alive, wait_until

PROCESSES = 50

# Reads, thinks, writes; what happened is appended, a line at a time. Killed in between, it has
# written the new number or it has not; the next one says which.
COUNT = '''
n=$(cat counter)
echo "begin $TRINCO_TOKEN $n" >> journal
sleep 0.00$(($TRINCO_TOKEN % 10))
echo $((n + 1)) > "new.$$" && mv "new.$$" counter
echo "end $TRINCO_TOKEN $((n + 1))" >> journal
'''


class Exclusion(Scene):
    def setUp(self):
        super().setUp()
        (self.folder / 'counter').write_text('0\n')
        (self.folder / 'journal').touch()

    def journal(self):
        return [(word, int(token), int(n)) for word, token, n in
                (line.split() for line in (self.folder / 'journal').read_text().splitlines())]

    def start_counting(self):
        return self.start('job', '--ttl', '5s', '--', 'sh', '-c', COUNT, cwd=self.folder)

    def test_fifty_processes_count_to_fifty(self):
        locks = [self.start_counting() for _ in range(PROCESSES)]
        self.assertEqual([0] * PROCESSES, [lock.end() for lock in locks])
        self.assertEqual('', ''.join(lock.said for lock in locks))
        lines = self.journal()
        self.assertEqual(PROCESSES, int((self.folder / 'counter').read_text()))
        expected = []
        for i, token in enumerate(token for word, token, _ in lines if word == 'begin'):
            expected += [('begin', token, i), ('end', token, i + 1)]
        self.assertEqual(expected, lines)
        self.assert_tokens_grow(lines)

    def test_the_same_while_holders_are_killed(self):
        seed = int(os.environ.get('TRINCO_SEED', '0')) or random.randrange(1, 1 << 30)
        choose = random.Random(seed)
        locks = [self.start_counting() for _ in range(PROCESSES)]
        kills = 0
        while any(lock.process.poll() is None for lock in locks):
            victim = choose.choice(locks)
            of_command = choose.random() < 0.5 and self.command_of(victim.pid)
            pid = of_command or victim.pid
            if victim.process.poll() is None and choose.random() < 0.004:
                try:
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
            self.assertLess(kills, 10_000)
        codes = [lock.end() for lock in locks]
        self.assertLessEqual(set(codes), {0, -signal.SIGKILL, 128 + signal.SIGKILL, 1})
        self.judge(seed, codes)
        print(f'seed {seed}: {kills} kills, {codes.count(0)} of {PROCESSES} went through')

    def judge(self, seed, codes):
        lines = self.journal()
        self.assert_tokens_grow(lines)
        count, holder = 0, None
        for word, token, n in lines:
            with self.subTest(seed=seed, word=word, token=token, n=n):
                if word == 'begin':
                    # The one before may have been killed before or after it wrote, not after it
                    # said so.
                    self.assertIn(n - count, (0, 1) if holder else (0,))
                    count, holder = n, token
                else:
                    self.assertEqual((holder, count + 1), (token, n))
                    count, holder = n, None
        self.assertGreaterEqual(count, codes.count(0))

    def assert_tokens_grow(self, lines):
        tokens = [token for word, token, _ in lines if word == 'begin']
        self.assertEqual(sorted(set(tokens)), tokens)

    @staticmethod
    def command_of(wrapper):
        """The process of the command: the guardian's first child."""
        try:
            with open(f'/proc/{wrapper}/task/{wrapper}/children', encoding='ascii') as children:
                guardian = int(children.read().split()[0])
            with open(f'/proc/{guardian}/task/{guardian}/children', encoding='ascii') as children:
                return int(children.read().split()[0])
        except (OSError, IndexError, ValueError):
            return None

    def test_kill_9_of_a_wrapper_hands_the_lock_on(self):
        took = []
        for _ in range(5):
            holder = self.hold('job')
            # It holds the pipe of its standard output open as long as it lives.
            grandchild = self.start('job', '--verbose', '--', 'sh', '-c',
                                    'cut -d" " -f1 /proc/uptime; python3 -c '
                                    '"import time; print(time.clock_gettime(7))"')
            wait_until(lambda: '1 ahead' in grandchild.said, 'the place of the waiter')
            began = scene.boot_time()
            os.kill(holder.pid, signal.SIGKILL)
            grandchild.line()
            wait_until(lambda: not is_alive(holder.command), 'the end of the command')
            took.append(scene.boot_time() - began)
            self.assertEqual(0, grandchild.end())
        took.sort()
        print('handed on after ' + ', '.join(f'{t * 1e3:.1f}' for t in took) + ' ms')
        self.assertLess(took[len(took) // 2], 1)


if __name__ == '__main__':
    scene.main()
