#!/usr/bin/env python3
"""What a user, a script or a service manager sees of a command that runs under supervision.

    supervise_realtime_test.py SUPERVISE_DRIVER
"""

import hashlib
import os
import signal
import subprocess
import sys
import unittest

import supervised
from supervised import SupervisedTest, status_lines, until


class ExitCodes(SupervisedTest):
    def test_every_code_of_the_command_is_ours(self):
        for code in range(256):
            self.assertEqual(self.run_command(['sh', '-c', f'exit {code}']).returncode, code)

    def test_a_signal_is_128_and_its_number(self):
        for number in (1, 2, 3, 6, 9, 10, 11, 12, 13, 14, 15, 34, 64):
            command = ['sh', '-c', f'ulimit -c 0; kill -{number} $$']
            self.assertEqual(self.run_command(command).returncode, 128 + number)

    def test_what_cannot_be_run_is_126_or_127_and_one_line(self):
        plain = self.path('plain')
        with open(plain, 'w') as file:
            file.write('echo never\n')
        for word, code in (('no-such-command-of-trinco', 127), ('', 127), ('/no/such/file', 127),
                           (plain, 126), ('/', 126), (plain + '/below', 126)):
            result = self.run_command([word])
            self.assertEqual((result.returncode, result.stdout), (code, b''), word)
            self.assertRegex(result.stderr.decode(), r'\Atrinco: [^\n]+\n\Z')

    def test_a_script_without_a_first_line_runs_as_in_a_shell(self):
        script = self.path('script')
        with open(script, 'w') as file:
            file.write('echo "$1 and $#"\nexit 9\n')
        os.chmod(script, 0o755)
        result = self.run_command([script, 'one', 'two three'])
        self.assertEqual((result.returncode, result.stdout), (9, b'one and 2\n'))


class WhatTheCommandGets(SupervisedTest):
    def test_standard_input_passes_whole(self):
        data = os.urandom(1 << 20) * 10
        result = self.run_command(['cat'], input=data)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(hashlib.sha256(result.stdout).digest(), hashlib.sha256(data).digest())

    def test_long_words_and_many_of_them_arrive(self):
        words = ['x' * 100_000, '', ' y ', *map(str, range(5000))]
        script = 'import sys; sys.stdout.write("\\n".join(sys.argv[1:]))'
        result = self.run_command([sys.executable, '-c', script, *words])
        self.assertEqual(result.stdout.decode().split('\n'), words)

    def test_variables_are_added_and_replace_their_namesakes(self):
        self.environment['TRINCO_LOCK'] = 'old'
        result = self.run_command(['env'], ['--set', 'TRINCO_LOCK=a=b', '--set', 'TRINCO_TOKEN=7'])
        lines = result.stdout.decode().splitlines()
        self.assertEqual([line for line in lines if line.startswith('TRINCO_LOCK=')],
                         ['TRINCO_LOCK=a=b'])
        self.assertIn('TRINCO_TOKEN=7', lines)
        self.assertIn('PATH=' + self.environment['PATH'], lines)

    def test_descriptors_are_the_users_and_the_one_to_keep_open(self):
        kept = self.path('kept')
        open(kept, 'w').close()
        users, other = os.pipe()
        os.set_inheritable(users, True)
        script = ('import os\n'
                  'for fd in sorted(map(int, os.listdir("/proc/self/fd"))):\n'
                  '    try: print(fd, os.readlink(f"/proc/self/fd/{fd}"))\n'
                  '    except OSError: pass')
        result = self.run_command([sys.executable, '-c', script], ['--keep-open', kept],
                                  pass_fds=[users], close_fds=True, stdin=subprocess.DEVNULL)
        os.close(users)
        os.close(other)
        found = dict(line.split(' ', 1) for line in result.stdout.decode().splitlines())
        kept_number, = (number for number, target in found.items() if target == kept)
        self.assertGreaterEqual(int(kept_number), 100)
        self.assertEqual(set(found), {'0', '1', '2', str(users), kept_number})

    def test_mask_and_dispositions_are_as_without_us(self):
        script = 'cat /proc/self/status'
        preparations = (
            lambda: None,
            lambda: (signal.signal(signal.SIGHUP, signal.SIG_IGN),
                     signal.signal(signal.SIGPIPE, signal.SIG_IGN),
                     signal.signal(signal.SIGCHLD, signal.SIG_IGN),
                     signal.signal(signal.SIGTTOU, signal.SIG_IGN)),
            lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM}))
        for prepare in preparations:
            alone = subprocess.run(['sh', '-c', script], preexec_fn=prepare, capture_output=True,
                                   restore_signals=False)
            ours = self.run_command(['sh', '-c', script], preexec_fn=prepare,
                                    restore_signals=False)
            for field in (b'SigBlk', b'SigIgn', b'SigCgt', b'SigPnd', b'ShdPnd'):
                line, = (line for line in alone.stdout.splitlines() if line.startswith(field))
                self.assertIn(line, ours.stdout.splitlines())

    def test_works_without_any_terminal_and_with_everything_closed(self):
        for how in ({'start_new_session': True}, {'preexec_fn': lambda: os.closerange(0, 3)}):
            result = subprocess.run(self.words([], ['sh', '-c', f'echo ran > {self.path("out")}']),
                                    env=self.environment, timeout=supervised.LIMIT_S, **how)
            self.assertEqual(result.returncode, 0)
            self.assertEqual(self.written('out'), ['ran'])
            os.unlink(self.path('out'))


# Two processes, parent and child in one group, that write who got which signal.
LISTENERS = r'''
import os, signal, sys
path, numbers = sys.argv[1], [int(n) for n in sys.argv[2].split(',')]
out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
who = 'parent'
def note(number, frame):
    os.write(out, f'{who} {number}\n'.encode())
    if number == signal.SIGUSR2: os._exit(5)
for number in numbers: signal.signal(number, note)
if os.fork() == 0: who = 'child'
os.write(out, f'{who} 0\n'.encode())
while True: signal.pause()
'''


class Signals(SupervisedTest):
    def listen(self, numbers, **how):
        command = [sys.executable, '-c', LISTENERS, self.path('got'),
                   ','.join(str(int(number)) for number in numbers)]
        wrapper = self.start(command, **how)
        self.written('got', 2)
        return wrapper

    def test_each_reaches_the_whole_group(self):
        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
                   signal.SIGWINCH, signal.SIGALRM, signal.SIGABRT, signal.SIGPIPE, signal.SIGCONT,
                   signal.SIGRTMIN + 3, signal.SIGUSR2]
        wrapper = self.listen(numbers)
        for count, number in enumerate(numbers, 2):
            wrapper.send_signal(number)
            got = self.written('got', 2 * count)
            self.assertEqual(set(got[-2:]), {f'parent {int(number)}', f'child {int(number)}'})
        self.assertEqual(self.code(wrapper), 5)
        self.assert_nobody_left()

    def test_what_ends_a_program_ends_command_and_grandchildren(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self.forget_events()
            wrapper = self.start(['sh', '-c', 'ulimit -c 0; sh -c "sleep 100; true"; true'])
            until(lambda: supervised.marked_as(self.marker, 'sleep', '100'), 'the grandchildren')
            wrapper.send_signal(number)
            # By a code even for INT, which came from no terminal.
            self.assertEqual(self.code(wrapper), 128 + number)
            self.assert_nobody_left()

    def test_a_burst_is_passed_on_and_term_twice_does_no_harm(self):
        numbers = [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, signal.SIGUSR2]
        wrapper = self.listen(numbers[:-1])
        for _ in range(200):
            for number in numbers[:-1]:
                wrapper.send_signal(number)
        until(lambda: all(f'{who} {int(number)}' in self.written('got')
                          for who in ('parent', 'child') for number in numbers[:-1]), 'all of them')
        wrapper.send_signal(signal.SIGUSR2)  # nobody handles it now
        self.assertEqual(self.code(wrapper), 128 + signal.SIGUSR2)
        self.assert_nobody_left()

    def test_what_was_ignored_at_the_start_is_not_passed_on(self):
        wrapper = self.listen([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2],
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            wrapper.send_signal(number)
        self.assertEqual(self.code(wrapper), 5)
        self.assertNotIn(f'parent {int(signal.SIGHUP)}', self.written('got'))

    def test_what_was_ignored_at_the_start_stays_so(self):
        wrapper = self.start(['sleep', '100'], restore_signals=False,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        wrapper.send_signal(signal.SIGHUP)
        os.kill(self.command_pid(), signal.SIGHUP)
        wrapper.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGTERM)

    def test_stop_and_continue_of_the_wrapper_are_those_of_the_command(self):
        # In a group of its own, as a shell starts jobs: the kernel stops nobody in a group that has
        # no parent outside, and the tests may run in such a one.
        wrapper = self.start(['sleep', '100'], preexec_fn=os.setpgrp)
        for _ in range(3):
            wrapper.send_signal(signal.SIGTSTP)
            until(lambda: supervised.state(wrapper.pid) == 'T', 'the wrapper to stop')
            self.assertEqual(supervised.state(self.command_pid()), 'T')
            wrapper.send_signal(signal.SIGCONT)
            until(lambda: supervised.state(self.command_pid()) == 'S', 'the command to go on')
            until(lambda: supervised.state(wrapper.pid) == 'S', 'the wrapper to go on')
        wrapper.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGTERM)

    def test_where_nobody_could_continue_it_nothing_stops(self):
        wrapper = self.start(['sh', '-c', f'trap "echo ran > {self.path("out")}" USR1; '
                                          'sleep 100 & while :; do wait; done'],
                             start_new_session=True)
        until(lambda: supervised.marked_as(self.marker, 'sleep', '100'), 'the grandchild')
        wrapper.send_signal(signal.SIGTSTP)
        until(lambda: 'stopped' in [event[0] for event in self.events()], 'the stop')
        wrapper.send_signal(signal.SIGUSR1)
        self.assertEqual(self.written('out'), ['ran'])
        wrapper.send_signal(signal.SIGTERM)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGTERM)

    def test_who_stops_and_continues_the_command_alone_stops_and_continues_both(self):
        wrapper = self.start(['sleep', '100'])
        os.kill(self.command_pid(), signal.SIGSTOP)
        until(lambda: supervised.state(wrapper.pid) == 'T', 'the wrapper to stop')
        os.kill(self.command_pid(), signal.SIGCONT)
        until(lambda: supervised.state(wrapper.pid) == 'S', 'the wrapper to go on')
        os.kill(self.command_pid(), signal.SIGTERM)
        self.assertEqual(self.code(wrapper), 128 + signal.SIGTERM)

    def test_the_guardian_has_a_group_of_its_own_and_its_name(self):
        self.start(['sleep', '100'])
        groups = {os.getpgid(pid) for pid in supervised.marked(self.marker)}
        self.assertEqual(len(groups), 3)
        self.assertEqual(status_lines(self.guardian_pid())['Name'], 'trinco-guardian')


if __name__ == '__main__':
    supervised.DRIVER = [sys.argv.pop(1)]
    unittest.main()
