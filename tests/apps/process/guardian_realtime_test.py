#!/usr/bin/env python3
"""What ends a command, whoever of its keepers is paused or killed, and what it leaves behind.

    guardian_realtime_test.py SUPERVISE_DRIVER [RUNS]

RUNS is how often the plain case is run in a row (default 300).
"""

import os
import signal
import subprocess
import sys
import unittest

import supervised
from supervised import SupervisedTest, boot_ms, until

RUNS = 300

# Writes the time of CLOCK_BOOTTIME in milliseconds to a file as fast as it can: how long it lived.
WRITER = ('import os, sys, time\n'
          'out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)\n'
          'while True:\n'
          '    os.pwrite(out, b"%20d" % int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000), 0)\n')

# A child that nobody of the command's group is related to: twice forked, in a session of its own.
DAEMON = 'setsid sh -c "setsid sleep 100 & echo \\$! >> {out}; exec sleep 100" & echo $! >> {out}; '

# A few lines of processes, each of which lives only until it has forked the next; half of them in
# sessions of their own.
RESTLESS = ('import os\n'
            'for depth in range(4):\n'
            '    if os.fork() == 0 and depth == 0: os.setsid()\n'
            'while True:\n'
            '    if os.fork(): os._exit(0)\n')


class Deadlines(SupervisedTest):
    def daemon(self):
        return DAEMON.format(out=self.path('daemons'))

    def test_at_act_it_is_asked_to_end(self):
        trap = f'trap "echo term > {self.path("got")}; exit 3" TERM; '
        wrapper = self.start(['sh', '-c', trap + 'while :; do sleep 0.01; done'], ['--act', 400])
        self.assertEqual(self.code(wrapper), 76)
        self.assertEqual(self.written('got'), ['term'])
        self.assertEqual(self.event('ended')[1], 3)
        self.assert_nobody_left()

    def test_at_act_those_that_left_the_group_are_asked_too(self):
        wrapper = self.start(['sh', '-c', self.daemon() + 'sleep 100'], ['--act', 600])
        self.written('daemons', 2)
        self.assertEqual(self.code(wrapper), 76)
        self.assertEqual([name for name, *_ in self.events()],
                         ['told', 'started', 'acted', 'ended', 'alone'])
        self.assert_nobody_left()

    def test_what_ignores_term_is_killed_at_the_end_with_all_descendants(self):
        script = 'trap "" TERM; ' + self.daemon() + 'while :; do sleep 0.01; done'
        begin = boot_ms()
        wrapper = self.start(['sh', '-c', script], ['--act', 400, '--end', 800])
        self.written('daemons', 2)
        self.assertEqual(self.code(wrapper), 76)
        self.assertEqual([name for name, *_ in self.events()],
                         ['told', 'started', 'acted', 'killed', 'ended', 'alone'])
        self.assertGreaterEqual(self.event('killed')[3] - begin, 800)
        self.assert_nobody_left()

    def test_numbers_of_an_outer_pid_namespace_are_not_taken_for_ours(self):
        outer = ['unshare', '--map-root-user', '--pid', '--fork']  # and /proc stays as it is
        if subprocess.run([*outer, 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('no PID namespace can be made here')
        words = self.words(['--end', 800], ['sh', '-c', self.daemon() + 'sleep 100'])
        result = subprocess.run([*outer, 'sh', '-c', '"$@"; echo code $?', 'sh', *words],
                                env=self.environment, stdout=subprocess.PIPE, check=False,
                                timeout=supervised.LIMIT_S)
        self.assertEqual(result.stdout, b'code 76\n')
        self.assertEqual([name for name, *_ in self.events()],
                         ['told', 'started', 'killed', 'ended', 'alone'])

    def test_what_is_stopped_is_continued_to_obey(self):
        wrapper = self.start(['sleep', '100'], ['--act', 500])
        os.kill(self.command_pid(), signal.SIGSTOP)
        until(lambda: supervised.state(wrapper.pid) == 'T', 'the wrapper to stop')
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to end')
        wrapper.send_signal(signal.SIGCONT)
        self.assertEqual(self.code(wrapper), 76)
        self.assertEqual(self.event('ended')[1], signal.SIGTERM)

    def test_at_act_kill_kills_and_ignore_does_nothing(self):
        trap = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.01; done']
        self.assertEqual(self.run_command(trap, ['--act', 100, '--at-act', 'kill']).returncode, 76)
        self.assertEqual(self.event('ended')[1], signal.SIGKILL)
        plain = ['sh', '-c', 'sleep 0.3; exit 4']
        self.assertEqual(self.run_command(plain, ['--act', 10, '--at-act', 'ignore']).returncode, 4)
        self.assertEqual(len([event for event in self.events() if event[0] == 'acted']), 2)

    def test_nothing_starts_after_the_end(self):
        out = self.path('out')
        result = self.run_command(['touch', out], ['--end', -1])
        self.assertEqual(result.returncode, 126)
        self.assertFalse(os.path.exists(out))

    def write_until_killed(self):
        """A writer that is to end after 700 ms, and how long after that it may have written: little
        more than a busy machine needs to let anybody run."""
        wrapper = self.start([sys.executable, '-c', WRITER, self.path('time')], ['--end', 700])
        self.written('time')
        return wrapper, self.event('told')[3] + 700 + 200

    def test_a_paused_wrapper_does_not_lengthen_it(self):
        wrapper, limit = self.write_until_killed()
        wrapper.send_signal(signal.SIGSTOP)
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to be killed')
        self.assertEqual(supervised.state(wrapper.pid), 'T')
        self.assertLessEqual(int(self.written('time')[0]), limit)
        wrapper.send_signal(signal.SIGCONT)
        self.assertEqual(self.code(wrapper), 76)
        self.assert_nobody_left()

    def test_deadlines_that_move_on_do_no_harm_until_they_stop_doing_so(self):
        self.assertEqual(self.run_command(['sleep', '2'], ['--renew', 1500]).returncode, 0)
        self.forget_events()
        wrapper = self.start(['sleep', '100'], ['--renew', 400])
        wrapper.send_signal(signal.SIGSTOP)
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to be killed')
        wrapper.send_signal(signal.SIGCONT)
        self.assertEqual(self.code(wrapper), 76)

    def test_a_paused_guardian_does_not_lengthen_it(self):
        wrapper, limit = self.write_until_killed()
        os.kill(self.guardian_pid(), signal.SIGSTOP)
        self.assertEqual(self.code(wrapper), 76)
        self.assertLessEqual(int(self.written('time')[0]), limit)
        self.assertEqual(self.event('gone')[0], 'gone')
        self.assert_nobody_left()


class KilledKeepers(SupervisedTest):
    def start_family(self):
        """A command, a grandchild in its group, and two that left the group."""
        out = self.path('family')
        if os.path.exists(out):
            os.unlink(out)
        script = f'echo $$ >> {out}; {DAEMON.format(out=out)} sleep 100 & echo $! >> {out}; ' \
            'sleep 100; true'
        wrapper = self.start(['sh', '-c', script])
        self.family = list(map(int, self.written('family', 4)))
        return wrapper

    def test_with_the_wrapper_go_command_and_all_descendants(self):
        wrapper = self.start_family()
        wrapper.kill()
        self.assert_nobody_left()

    def test_with_the_guardian_go_command_and_all_descendants(self):
        wrapper = self.start_family()
        os.kill(self.guardian_pid(), signal.SIGKILL)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGKILL)
        self.assertFalse([pid for pid in self.family if supervised.is_alive(pid)])
        self.assert_nobody_left()

    def test_one_after_the_other(self):
        for first_is_guardian in (True, False):
            self.forget_events()
            wrapper = self.start_family()
            both = [self.guardian_pid(), wrapper.pid]
            for pid in both if first_is_guardian else reversed(both):
                if supervised.is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
                until(lambda: not [p for p in self.family if supervised.is_alive(p)], 'the family')
            self.assert_nobody_left()

    def test_the_command_goes_with_the_guardian_while_the_wrapper_is_paused(self):
        wrapper = self.start_family()
        guardian = self.guardian_pid()
        wrapper.send_signal(signal.SIGSTOP)
        until(lambda: supervised.state(wrapper.pid) == 'T', 'the wrapper to stop')
        os.kill(guardian, signal.SIGKILL)
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to end')
        self.assertEqual(supervised.state(wrapper.pid), 'T')
        wrapper.send_signal(signal.SIGCONT)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGKILL)
        self.assert_nobody_left()

    def test_the_guardian_holds_nothing_of_the_wrappers(self):
        self.start(['sleep', '100'])
        folder = f'/proc/{self.guardian_pid()}/fd'
        held = [os.readlink(f'{folder}/{fd}') for fd in os.listdir(folder) if int(fd) > 2]
        kinds = sorted(target.split('[')[0] if 'socket' in target else target for target in held)
        self.assertEqual(kinds, ['anon_inode:[signalfd]', 'anon_inode:[timerfd]', 'socket:'])

    def test_a_paused_command_goes_with_the_wrapper(self):
        wrapper = self.start_family()
        for pid in self.family:
            os.kill(pid, signal.SIGSTOP)
        wrapper.kill()
        self.assert_nobody_left()

    def test_children_from_before_are_not_touched(self):
        """A shell that becomes the program leaves it its own children."""
        words = self.words([], ['sleep', '100'])
        script = f'setsid sh -c "sleep 100 & exec sleep 100" & echo $! > {self.path("stranger")};' \
            ' exec "$@"'
        wrapper = subprocess.Popen(['sh', '-c', script, 'sh', *words], env=self.environment)
        self.addCleanup(wrapper.wait)
        self.event('started')
        stranger = int(self.written('stranger')[0])
        until(lambda: len(supervised.marked(self.marker)) >= 5, 'the grandchild of the stranger')
        os.kill(self.guardian_pid(), signal.SIGKILL)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGKILL)
        self.assertTrue(supervised.is_alive(stranger))
        self.assertEqual(len(supervised.marked(self.marker)), 2)

    def test_a_family_that_keeps_forking_is_killed_too(self):
        wrapper = self.start([sys.executable, '-c', RESTLESS])
        wrapper.kill()
        self.assert_nobody_left()


class ToldLate(SupervisedTest):
    """The process of the command is made before the guardian is told what to run, and waits for it
    for a moment. Nobody may see whether it still did."""

    LATE = [['--late', 0], ['--late', 100]]

    def guardian_of(self, wrapper):
        return until(lambda: [pid for pid in supervised.marked(self.marker) if
                              int(supervised.status_lines(pid).get('PPid', 0)) == wrapper.pid],
                     'the guardian')[0]

    def start_late(self, milliseconds, *command):
        words = self.words(['--late', milliseconds], command)
        wrapper = subprocess.Popen(words, env=self.environment, stderr=subprocess.PIPE)
        self.addCleanup(wrapper.wait)
        self.addCleanup(wrapper.stderr.close)
        self.addCleanup(wrapper.kill)
        return wrapper

    def test_the_command_sees_no_difference(self):
        script = ('import os, sys; print(len(sys.argv[1]), os.environ["A"], len(os.environ["B"]),'
                  ' os.getpgid(0) == os.getpid(), os.getsid(0),'
                  ' sorted(os.listdir("/proc/self/fd")),'
                  ' *[line for line in open("/proc/self/status") if line.startswith("Sig")'
                  ' and not line.startswith("SigQ")]); sys.exit(3)')
        kept = self.path('kept')
        with open(kept, 'w', encoding='ascii'):
            pass
        command = [sys.executable, '-c', script, 'x' * 50_000]  # in several packets
        options = ['--keep-open', kept, '--set', 'A=b', '--set', 'B=' + 'y' * 50_000]
        seen = [self.run_command(command, [*late, *options]) for late in self.LATE]
        self.assertEqual([one.returncode for one in seen], [3, 3], seen)
        self.assertEqual(seen[0].stdout, seen[1].stdout)
        self.assertIn(b"50000 b 50000 True", seen[0].stdout)
        self.assertIn(b"'200'", seen[0].stdout)

    def test_what_cannot_be_run_is_told_the_same(self):
        file = self.path('no-program')
        with open(file, 'w', encoding='ascii') as out:
            out.write('words')
        os.chmod(file, 0o600)
        for late in self.LATE:
            with self.subTest(late):
                self.assertEqual(self.run_command(['no-such-command'], late).returncode, 127)
                self.assertEqual(self.run_command([file], late).returncode, 126)

    def test_the_guardian_holds_the_kept_descriptor_and_nothing_else(self):
        kept = self.path('kept')
        os.mkfifo(kept)
        reader = os.open(kept, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        for late in self.LATE:
            with self.subTest(late):
                self.forget_events()
                wrapper = self.start(['sleep', '100'], [*late, '--keep-open', kept])
                folder = f'/proc/{self.guardian_pid()}/fd'
                held = [os.readlink(f'{folder}/{fd}') for fd in os.listdir(folder) if int(fd) > 2]
                self.assertEqual(sorted(name.split('[')[0] for name in held),
                                 sorted([kept, 'anon_inode:', 'anon_inode:', 'socket:']))
                wrapper.kill()
                self.assert_nobody_left()

    def test_who_waits_longer_has_the_guardian_alone(self):
        wrapper = self.start_late(100_000, 'true')
        guardian = self.guardian_of(wrapper)
        until(lambda: supervised.state(guardian) == 'S', 'the guardian to wait by itself')
        self.assertEqual(sorted(supervised.marked(self.marker)), sorted([wrapper.pid, guardian]))

    def test_a_wrapper_that_is_killed_before_leaves_nobody_and_runs_nothing(self):
        out = self.path('out')
        for _ in range(20):
            wrapper = self.start_late(100_000, 'touch', out)
            self.guardian_of(wrapper)
            wrapper.kill()
            wrapper.wait()
            self.assert_nobody_left()
        self.assertFalse(os.path.exists(out))

    def test_a_guardian_that_is_killed_before_leaves_nobody_and_runs_nothing(self):
        out = self.path('out')
        for _ in range(20):
            wrapper = self.start_late(50, 'touch', out)
            os.kill(self.guardian_of(wrapper), signal.SIGKILL)
            self.assertEqual(self.code(wrapper), 128 + signal.SIGKILL)
            self.assert_nobody_left()
        self.assertFalse(os.path.exists(out))


class Leftovers(SupervisedTest):
    def test_a_daemon_is_waited_for_and_the_users_told(self):
        script = f'setsid sh -c "sleep 1.3; echo done > {self.path("out")}" & exit 6'
        result = self.run_command(['sh', '-c', script])
        self.assertEqual(result.returncode, 6)
        self.assertEqual(self.written('out'), ['done'])
        self.assertEqual(result.stderr.decode().count('trinco: '), 1)
        self.assertRegex(result.stderr.decode(), r'waiting for \d process')
        self.assertGreaterEqual(self.event('ended')[2], 1)

    def test_short_ones_are_waited_for_without_a_word(self):
        result = self.run_command(['sh', '-c', '(sleep 0.2; echo late) & exit 0'])
        self.assertEqual((result.stdout, result.stderr), (b'late\n', b''))

    def test_the_users_signal_ends_them(self):
        wrapper = self.start(['sh', '-c', 'setsid sleep 100 & exit 6'])
        self.event('ended')
        wrapper.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(wrapper), 6)
        self.assert_nobody_left()

    def test_deadlines_end_them(self):
        command = ['sh', '-c', 'setsid sleep 100 & exit 6']
        self.assertEqual(self.run_command(command, ['--end', 300]).returncode, 6)
        self.assert_nobody_left()

    def test_the_kept_descriptor_is_open_until_the_last_is_gone(self):
        kept = self.path('kept')
        os.mkfifo(kept)
        reader = os.open(kept, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        # The leftover closes every descriptor; its keepers still hold the one that matters.
        leftover = 'import os; os.closerange(3, 1000); os.execvp("sleep", ["sleep", "100"])'
        wrapper = self.start(['sh', '-c', f'setsid {sys.executable} -c \'{leftover}\' & exit 0'],
                             ['--keep-open', kept])
        self.event('ended')
        guardian, = (pid for pid in supervised.marked(self.marker)
                     if supervised.status_lines(pid).get('Name') == 'trinco-guardian')
        open_there = f'/proc/{guardian}/fd'
        held = [os.readlink(f'{open_there}/{fd}') for fd in os.listdir(open_there)]
        self.assertEqual(held.count(kept), 1)
        wrapper.kill()
        self.assert_nobody_left()

    def test_many_runs_leave_nobody(self):
        for run in range(RUNS):
            self.assertEqual(self.run_command(['true'], capture_output=False).returncode, 0, run)
        self.assertEqual(supervised.marked(self.marker), [])


if __name__ == '__main__':
    supervised.DRIVER = [sys.argv.pop(1)]
    if len(sys.argv) > 1 and sys.argv[1].isdigit():
        RUNS = int(sys.argv.pop(1))
    unittest.main()
