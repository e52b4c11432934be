#!/usr/bin/env python3
"""`trinco lock` from outside: exit codes, waiting, sharing, what it says."""

import fcntl
import os
import resource
import signal
import subprocess
import sys

import scene
from scene import Scene, boot_time, family_of, is_alive, pause, wait_until


class Codes(Scene):
    def test_the_commands_own_code_and_streams(self):
        self.assertEqual(0, self.run_lock('job', '--', 'true').returncode)
        self.assertEqual(3, self.run_lock('job', '--', 'sh', '-c', 'exit 3').returncode)
        done = self.run_lock('job', '--', 'sh', '-c', 'tr a-z A-Z; echo problem >&2', input='abc')
        self.assertEqual((0, 'ABC', 'problem\n'), (done.returncode, done.stdout, done.stderr))

    def test_a_signal_is_128_and_its_number(self):
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
            done = self.run_lock('job', '--', 'sh', '-c', f'kill -{int(number)} $$')
            self.assertEqual(128 + number, done.returncode)

    def test_what_cannot_be_started(self):
        plain = self.folder / 'plain'
        plain.write_text('not a program')
        done = self.run_lock('job', '--', str(plain))
        self.assertEqual(126, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*plain[^\n]*\n\Z')
        done = self.run_lock('job', '--', 'no-such-command-here')
        self.assertEqual(127, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*no-such-command-here[^\n]*\n\Z')
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)

    def test_taken(self):
        holder = self.hold('job')
        done = self.run_lock('job', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: the lock "job" is taken: held for .* by '
                                      rf'"\S+:{holder.pid} sh"\n\Z')
        self.assertEqual(75, self.run_lock('job', '--wait', '0', '--', 'true').returncode)
        began = boot_time()
        done = self.run_lock('job', '--wait', '200ms', '--', 'true')
        self.assertGreater(boot_time() - began, 0.2)
        self.assertEqual(75, done.returncode)
        self.assertIn('could not be had within 200 ms: held for', done.stderr)
        done = self.run_lock('job', '--no-wait', '--code-not-acquired', '9', '--', 'true')
        self.assertEqual(9, done.returncode)
        self.assertEqual(0, holder.let_go())

    def test_closed_standard_descriptors_stay_so_and_do_no_harm(self):
        see = 'import os, sys\n' \
            'print(*[fd for fd in (0, 1, 2) if os.path.exists(f"/proc/self/fd/{fd}")],\n' \
            '      file=open(sys.argv[1], "w"))'
        holder = self.hold('taken')
        for closed in ([0], [1, 2], [0, 1, 2]):
            def close(numbers=tuple(closed)):
                for number in numbers:
                    os.close(number)

            def run(*words):
                process = subprocess.Popen(self.words(*words), env=self.environment,
                                           preexec_fn=close)
                self.addCleanup(lambda: process.poll() is None and process.kill())
                return process.wait(timeout=scene.PATIENCE)
            seen = self.folder / 'seen'
            self.assertEqual(0, run('job', '--', sys.executable, '-c', see, str(seen)))
            self.assertEqual(sorted({0, 1, 2} - set(closed)),
                             list(map(int, seen.read_text().split())))
            self.assertEqual(75, run('taken', '--no-wait', '--', 'true'))
            self.assertEqual(127, run('job', '--', 'no-such-command-here'))
        holder.let_go()

    def test_too_few_descriptors_are_an_error_and_no_wait_for_ever(self):
        for limit in (5, 6, 9, 12, 15):
            done = subprocess.run(
                self.words('job', '--', 'true'), env=self.environment, capture_output=True,
                text=True, timeout=scene.PATIENCE, check=False,
                preexec_fn=lambda most=limit: resource.setrlimit(resource.RLIMIT_NOFILE,
                                                                 (most, most)))
            self.assertIn(done.returncode, (69, 77), (limit, done.stderr))
            self.assertEqual(1, done.stderr.count('\n'))

    def test_quiet_leaves_it_to_the_code(self):
        holder = self.hold('job')
        for words in (['--no-wait'], ['--wait', '100ms']):
            done = self.run_lock('job', *words, '--quiet', '--', 'true')
            self.assertEqual((75, ''), (done.returncode, done.stderr))
        # Errors are said all the same.
        done = self.run_lock('job', '-q', '--no-wait', '--locks', 'local:/none/x.db', '--', 'true')
        self.assertEqual(69, done.returncode)
        self.assertIn('does not exist', done.stderr)
        holder.let_go()
        done = self.run_lock('job', '-q', '--', 'no-such-command-here')
        self.assertEqual(127, done.returncode)
        self.assertIn('no-such-command-here', done.stderr)

    def test_a_label_names_the_holder(self):
        holder = self.hold('job', '--label', 'the nightly run')
        self.assertIn('by "the nightly run"',
                      self.run_lock('job', '--no-wait', '--', 'true').stderr)
        holder.let_go()

    def test_a_store_that_does_not_answer(self):
        self.run_lock('job', '--', 'true')
        with open(self.folder / 'x.db-gate', 'r+b') as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            done = self.run_lock('job', '--', 'true')
        self.assertEqual(69, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: TRINCO_LOCKS: the store "local:\S+x.db" was not '
                                      r'opened: [^\n]+\n\Z')

    def test_a_store_that_does_not_answer_does_not_hold_back_a_signal(self):
        self.run_lock('job', '--', 'true')
        with open(self.folder / 'x.db-gate', 'r+b') as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            lock = self.start('job', '--', 'true')
            wait_until(lambda: scene.has_opened(lock.pid, 'x.db-gate'), 'the store being opened')
            began = boot_time()
            lock.signal(signal.SIGTERM)
            self.assertIn(lock.end(), (-signal.SIGTERM, 128 + signal.SIGTERM))
            self.assertLess(boot_time() - began, 1)

    def test_mistakes(self):
        for words, says in (
                (['--ttl', '1500ms'], 'whole seconds'),
                (['--ttl', '-3s'], '--ttl'),
                (['--ttl', '30'], 'unit'),
                (['--ttl', '15s', '--grace', '5s'], 'at most 4250ms are allowed'),
                (['--wait', '3s', '--no-wait'], 'contradict'),
                (['-n', '3', '--shared'], 'contradict'),
                (['-v', '--quiet'], 'contradict'),
                (['-n', '0'], '1000000'),
                (['--on-lost', 'shrug'], 'term'),
                (['--code-lost', '256'], '255'),
                (['--label', 'two\nlines'], 'one line')):
            with self.subTest(words):
                done = self.run_lock('job', *words, '--', 'true')
                self.assertEqual(64, done.returncode, done.stderr)
                self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
                self.assertIn(says, done.stderr)
        done = self.run_lock('a//b', '--', 'true')
        self.assertEqual(64, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*a//b[^\n]*\n\Z')


class Environment(Scene):
    def test_of_the_command(self):
        script = 'echo "$TRINCO_LOCK $TRINCO_TOKEN $TRINCO_LEASE"'
        first = self.run_lock('job', '--', 'sh', '-c', script).stdout.split()
        second = self.run_lock('job', '--prefix', 'team/', '--', 'sh', '-c', script).stdout.split()
        self.assertEqual(['job', 'team/job'], [first[0], second[0]])
        self.assertGreater(int(second[1]), int(first[1]))
        self.assertNotEqual(first[2], second[2])

    def test_no_token_of_an_outer_lock_reaches_a_shared_one(self):
        inner = self.words('inner', '--shared', '--', 'sh', '-c', 'echo "[$TRINCO_TOKEN]"')
        self.assertEqual('[]\n', self.run_lock('outer', '--', *inner).stdout)

    def test_verbose_tells_times_token_and_lease(self):
        done = self.run_lock('job', '-v', '--', 'sh', '-c', 'echo $TRINCO_TOKEN $TRINCO_LEASE')
        token, lease = done.stdout.split()
        self.assertRegex(done.stderr, rf'(?m)^trinco: the lock "job": granted after [\d.]+ m?s, '
                                      rf'token {token}, lease {lease}$')
        self.assertRegex(done.stderr, r'(?m)^trinco: the lock "job": held for [\d.]+ m?s, given '
                                      r'back in [\d.]+ m?s$')
        self.assertEqual('', self.run_lock('job', '--', 'true').stderr)


class Holding(Scene):
    def test_is_renewed_for_as_long_as_the_command_runs(self):
        holder = self.hold('job', '--ttl', '1s')
        end = boot_time() + 2.5
        while boot_time() < end:
            self.assertEqual(75, self.run_lock('job', '--no-wait', '--', 'true').returncode)
            pause(0.1)
        self.assertEqual(0, holder.let_go())
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)


class Waiting(Scene):
    def test_granted_in_the_order_of_entering(self):
        order = self.folder / 'order'
        holder = self.hold('job')
        waiters = [self.queue_up('job', '--', 'sh', '-c', f'echo {i} >> {order}', ahead=i + 1)
                   for i in range(6)]
        self.assertFalse(order.exists())
        holder.let_go()
        self.assertEqual([0] * 6, [w.end() for w in waiters])
        self.assertEqual([str(i) for i in range(6)], order.read_text().split())

    def test_a_signal_ends_it_at_once_and_leaves_no_entry(self):
        holder = self.hold('job')
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            waiter = self.queue_up('job', '--', 'true', ahead=1)
            began = boot_time()
            waiter.signal(number)
            self.assertEqual(128 + number, waiter.end())
            took = boot_time() - began
            self.assertLess(took, 1)
            self.assertIn('interrupted while waiting', waiter.said)
            self.assertEqual(1, self.entries('job'))
            print(f'{number.name}: ended after {took * 1e3:.1f} ms')
        self.assertEqual(0, holder.let_go())
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)

    def test_one_that_is_killed_leaves_no_process_and_runs_nothing(self):
        ran = self.folder / 'ran'
        holder = self.hold('job')
        for patience in (0, 0.005, 0.05):  # before it has entered, just then, and for long
            waiter = self.start('job', '--', 'touch', str(ran))
            pause(patience)
            own = family_of(waiter.pid)
            waiter.signal(signal.SIGKILL)
            wait_until(lambda: not any(map(is_alive, own)), f'the end of {own}')
            wait_until(lambda: self.entries('job') == 1, 'the end of the entry')
        self.assertEqual(0, holder.let_go())
        self.assertFalse(ran.exists())

    def test_one_that_gave_up_holds_nobody_back(self):
        holder = self.hold('job')
        gives_up = self.queue_up('job', '--wait', '1s', '--', 'true', ahead=1)
        waits = self.queue_up('job', '--', 'true', ahead=2)
        self.assertEqual(75, gives_up.end())
        holder.let_go()
        self.assertEqual(0, waits.end())

    def test_one_that_was_stopped_beyond_its_ttl_queues_anew(self):
        holder = self.hold('job')
        waiter = self.queue_up('job', '--ttl', '1s', '--', 'echo', 'ran', ahead=1)
        waiter.signal(signal.SIGSTOP)
        wait_until(lambda: self.entries('job') == 1, 'the end of the waiter\'s lease')
        waiter.signal(signal.SIGCONT)
        wait_until(lambda: 'it queues anew' in waiter.said, 'the notice')
        holder.let_go()
        self.assertEqual(('ran', 0), (waiter.line(), waiter.end()))


class Sharing(Scene):
    def test_shared_holders_together_and_one_alone(self):
        first = self.hold('data', '--shared')
        second = self.hold('data', '--shared')
        writer = self.queue_up('data', '--', 'echo', 'alone', ahead=2)
        late = self.queue_up('data', '--shared', '--', 'echo', 'late', ahead=3)
        first.let_go()
        self.assertEqual(75, self.run_lock('data', '--no-wait', '--', 'true').returncode)
        second.let_go()
        self.assertEqual(('alone', 0), (writer.line(), writer.end()))
        self.assertEqual(('late', 0), (late.line(), late.end()))

    def test_so_many_at_a_time(self):
        holders = [self.hold('pool', '-n', '2') for _ in range(2)]
        self.assertEqual(75, self.run_lock('pool', '-n', '2', '--no-wait', '--', 'true').returncode)
        third = self.queue_up('pool', '-n', '2', '--', 'echo', 'third', ahead=2)
        holders[0].let_go()
        self.assertEqual(('third', 0), (third.line(), third.end()))
        done = self.run_lock('pool', '-n', '3', '--', 'true')
        self.assertEqual(64, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: the lock "pool" is used with -n 2 and not with '
                                      r'-n 3; [^\n]+\n\Z')
        self.assertEqual(0, holders[1].let_go())

    def test_a_nested_lock_of_the_same_name_does_not_hang_with_a_limit(self):
        inner = self.words('job', '--wait', '100ms', '--', 'true')
        self.assertEqual(75, self.run_lock('job', '--', *inner).returncode)

    def test_a_nested_lock_of_the_same_name_says_that_it_waits_for_itself(self):
        lock = self.start('job', '--', *self.words('job', '--', 'true'))
        wait_until(lambda: lock.said, 'the warning')
        self.assertIn('the lock "job" is held by the command that this one runs in', lock.said)
        lock.signal(signal.SIGTERM)
        lock.end()
        # Not where there is none, and not when it is another store's lock of that name.
        for words in (['job', '--shared', '--', *self.words('job', '--shared', '--', 'true')],
                      ['job', '--', *self.words('job', '--locks', f'local:{self.folder}/y.db', '--',
                                                'true')]):
            done = self.run_lock(*words)
            self.assertEqual((0, ''), (done.returncode, done.stderr))


if __name__ == '__main__':
    scene.main()
