#!/usr/bin/env python3
"""`trinco call` from outside: what counts, what is said, and how it ends."""

import fcntl
import os
import pathlib
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'breakers'))
from scene import (PATIENCE, PROGRAM, Scene, main, signals_as_in_a_shell,  # noqa: E402
                   wait_until)


class Call(Scene):
    def counts(self):
        return self.show()['window']

    def test_a_command_runs_as_it_would_alone(self):
        code, out, err = self.call('--', 'sh', '-c', 'cat; echo oh >&2; exit 7', input='hello\n')
        self.assertEqual((7, 'hello\n', 'oh\n'), (code, out, err))
        self.assertEqual(0, self.call('--', 'true')[0])
        self.assertEqual(128 + signal.SIGSEGV, self.call('--', 'sh', '-c', 'kill -SEGV $$')[0])

    def test_what_counts(self):
        for _ in range(3):
            self.call_ends(0, '--', 'true')
        self.call_ends(3, '--', 'sh', '-c', 'exit 3')
        self.call_ends(143, '--', 'sh', '-c', 'kill -TERM $$')
        self.call_ends(134, '--', 'sh', '-c', 'kill -ABRT $$')
        self.call_ends(75, '--ignore-exit', '70-80', '--', 'sh', '-c', 'exit 75')
        self.call_ends(4, '--failure-exit', '1,2', '--', 'sh', '-c', 'exit 4')
        self.call_ends(2, '--failure-exit', '1,2', '--', 'sh', '-c', 'exit 2')
        n = self.counts()
        self.assertEqual((4, 3, 2), (n['success'], n['failure'], n['ignored']))

    def test_a_command_that_is_not_there_counts_as_nothing(self):
        for _ in range(6):
            code, _, err = self.call('--', 'no-such-command-anywhere')
            self.assertEqual(127, code)
            self.assertRegex(err, r'\Atrinco: [^\n]+\n\Z')
        self.assertEqual(126, self.call('--', '/etc/passwd')[0])
        self.assertEqual((0, 7), (self.counts()['failure'], self.counts()['ignored']))
        self.assertEqual('closed', self.state())

    def test_a_timeout_is_a_failure_whatever_the_command_makes_of_it(self):
        code, _, err = self.call('--timeout', '50ms', '--', 'sleep', '60')
        self.assertEqual(128 + signal.SIGTERM, code)
        self.assertEqual('trinco: the command was ended after 50 ms (--timeout); that is a failure '
                         'of pay\n', err)
        code, _, err = self.call('--timeout', '200ms', '--', 'sh', '-c',
                                 'sleep 60 & trap "kill $!; exit 0" TERM; wait')
        self.assertEqual(0, code)
        self.assertIn('--timeout', err)
        code, _, _ = self.call('--timeout', '200ms', '--grace', '50ms', '--', 'sh', '-c',
                               'trap "" TERM; while :; do sleep 1; done')
        self.assertEqual(128 + signal.SIGKILL, code)
        self.assertEqual((0, 3), (self.counts()['success'], self.counts()['failure']))

    def test_a_timeout_counts_when_it_comes_not_when_the_command_is_gone(self):
        slow = self.start('call', 'pay', '--timeout', '50ms', '--grace', '10min', '--', 'sh', '-c',
                          'trap "" TERM; echo ready; while :; do sleep 1; done')
        wait_until(lambda: self.run_program('breakers', 'show', 'pay')[0] == 0, 'the failure')
        self.assertEqual(1, self.counts()['failure'])
        self.assertIsNone(slow.poll())

    def test_a_timeout_that_cannot_be_counted_is_said(self):
        self.call_ends(0, '--', 'true')
        slow = self.start('call', 'pay', '--timeout', '500ms', '--', 'sh', '-c',
                          'echo ready; exec sleep 60')
        self.assertEqual('ready\n', slow.stdout.readline())
        with sqlite3.connect(self.file) as db:
            db.execute("UPDATE breakers SET record = x'00' WHERE name = 'pay'")
        db.close()
        self.assertEqual(128 + signal.SIGTERM, slow.wait(PATIENCE))
        self.assertIn('could not count the call of pay at local:', slow.stderr.read())

    def test_a_call_that_somebody_interrupts_counts_as_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(number):
                # One that the signal ends, and one that makes an exit code of it.
                for script, code in (('exec sleep 60', 128 + number),
                                     ('trap "exit 9" INT TERM HUP QUIT; echo trap; read x', 9)):
                    call = self.start('call', 'pay', '--', 'sh', '-c', 'echo ready; ' + script,
                                      stdin=subprocess.PIPE)
                    call.stdout.readline()
                    if 'trap' in script:
                        call.stdout.readline()
                    call.send_signal(number)
                    # When a command dies of a signal, so may its wrapper: both mean 128+n.
                    got = call.wait(PATIENCE)
                    self.assertIn(got, (code, -number))
                    self.assertEqual('', call.stderr.read())
        n = self.counts()
        self.assertEqual((0, 8), (n['failure'], n['ignored']))

    def test_ctrl_c_at_a_terminal_counts_as_nothing(self):
        pid, terminal = pty.fork()
        if pid == 0:
            signals_as_in_a_shell()
            os.execve(PROGRAM, [PROGRAM, 'call', 'pay', '--', 'sh', '-c',
                                'echo ready; read line; echo "got $line"; exec cat'],
                      self.environment)
        self.addCleanup(os.close, terminal)
        shown = b''
        for wanted in (b'ready', b'got it'):
            while wanted not in shown:
                shown += os.read(terminal, 1000)
            os.write(terminal, b'it\n' if wanted == b'ready' else b'\x03')
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertIn(status, (-signal.SIGINT, 128 + signal.SIGINT))
        self.assertEqual((0, 1), (self.counts()['failure'], self.counts()['ignored']))

    def test_thirty_failing_processes_open_it_for_the_next(self):
        code, out, err = self.call('--open-for', '1min', '--', 'false')
        self.assertEqual((1, '', ''), (code, out, err))
        calls = [self.start('call', 'pay', '--open-for', '1min', '--', 'false') for _ in range(30)]
        for call in calls:
            self.assertIn(call.wait(PATIENCE), (1, 75))
        mark = self.folder / 'ran'
        code, out, err = self.call('--open-for', '1min', '--', 'touch', str(mark))
        self.assertEqual((75, ''), (code, out))
        said = re.fullmatch(r'trinco: pay is open \(failure_rate\), refused by the shared breaker; '
                            r'retry in (?:(\d+) min)? ?(?:([0-9.]+) s)?\n', err)
        self.assertTrue(said, err)
        self.assertFalse(mark.exists())
        breaker = self.show()
        self.assertEqual('open', breaker['state'])
        self.assertGreaterEqual(breaker['totals']['failure'], 5)
        # Whatever the processes did, each is found once: as a failure, or refused.
        self.assertEqual(32, breaker['totals']['failure'] + breaker['totals']['rejected'])

    def test_below_the_threshold_it_stays_closed(self):
        self.fail_calls(4)
        self.assertEqual('closed', self.state())
        self.answer('breakers', 'reset', 'pay')
        for _ in range(5):
            self.call_ends(0, '--', 'true')
        self.fail_calls(4)
        self.assertEqual('closed', self.state())
        self.fail_calls(1)
        self.assertEqual('open', self.state())  # 5 of 10

    def test_flags_of_the_policy(self):
        self.fail_calls(1, '--failure-count', '2', name='count')
        self.assertEqual('closed', self.state('count'))
        self.fail_calls(1, '--failure-count', '2', name='count')
        self.assertEqual('open', self.state('count'))
        rate = ('--failure-rate', '0.2', '--minimum-calls', '4', '--window', '20s')
        for _ in range(3):
            self.call_ends(0, *rate, '--', 'true', name='rate')
        self.fail_calls(1, *rate, name='rate')
        self.assertEqual('open', self.state('rate'))
        slow = ('--slow-call-after', '1ms', '--slow-call-rate', '0.5', '--minimum-calls', '2')
        for _ in range(2):
            self.call_ends(0, *slow, '--', 'sleep', '0.01', name='slow')
        self.assertEqual('open', self.state('slow'))
        self.assertEqual('slow_call_rate', self.show('slow')['reason'])

    def test_the_file_names_the_policy_and_flags_beat_it(self):
        config = self.folder / 'trinco.toml'
        config.write_text('[breakers.policies.pay]\nfailure_count = 2\nwindow = "20s"\n'
                          'failure_exit = "3"\ntimeout = "50ms"\nfallback = "echo later"\n')
        words = ('--config', str(config))
        self.call_ends(1, *words, '--', 'false')
        self.assertEqual(0, self.show()['window']['failure'])
        self.assertEqual(20_000, self.show()['options']['window_ms'])
        code, _, err = self.call(*words, '--', 'sleep', '60')
        self.assertEqual(143, code)
        self.assertIn('--timeout', err)
        one = (*words, '--failure-count', '1')
        code, _, err = self.call(*one, '--', 'sh', '-c', 'exit 3')
        self.assertEqual(3, code)
        self.assertIn("replace those of another process: failure_count 1 (there 2)", err)
        self.assertEqual('open', self.state())
        self.assertEqual((0, 'later\n', ''), self.call(*one, '--', 'true'))
        for line, said in (('windw = "2s"', 'did you mean window?'), ('window = 20', 'no unit'),
                           ('failure_rate = 2', 'at most 1'), ('count_window = 9', 'no window'),
                           ('fallback = " "', 'no word to run')):
            with self.subTest(line):
                config.write_text('[breakers.policies.pay]\n' + line + '\n')
                err = self.mistake('call', 'pay', *words, '--', 'true')
                self.assertIn(said, err)
                self.assertIn('trinco.toml:2: ', err)

    def test_a_refusal_has_its_own_code_if_wanted(self):
        self.answer('breakers', 'trip', 'pay', '--create', '--for', '1h')
        for code in (0, 7, 75, 255):
            got, _, err = self.call('--code-open', str(code), '--', 'true')
            self.assertEqual(code, got)
            self.assertRegex(err, r'\Atrinco: pay is open [^\n]+; retry in [^\n]+\n\Z')

    def test_a_fallback_answers_instead(self):
        fallback = ('--fallback', r'''sh -c 'printf "%s|" "$0" "$@"; exit 9' "a b" c\ d $HOME''')
        self.assertEqual((0, 'called\n', ''), self.call(*fallback, '--', 'echo', 'called'))
        self.answer('breakers', 'trip', 'pay', '--for', '1h')
        self.assertEqual((9, 'a b|c d|$HOME|', ''),
                         self.call(*fallback, '--', 'echo', 'called'))
        code, _, err = self.call('-v', *fallback, '--', 'echo', 'called')
        self.assertEqual(9, code)
        self.assertIn('refused', err)
        self.assertEqual(127, self.call('--fallback', 'no-such-command-anywhere', '--', 'true')[0])
        # The time of the call is not the fallback's.
        self.assertEqual(0, self.call('--timeout', '10ms', '--fallback', 'sleep 0.1', '--',
                                      'true')[0])
        self.assertEqual(4, self.show()['totals']['rejected'])

    def test_operators_are_obeyed_and_named(self):
        self.answer('breakers', 'force-open', 'pay', '--create', '--reason', 'until noon')
        code, _, err = self.call('--', 'true')
        self.assertEqual(75, code)
        self.assertRegex(err, r'\Atrinco: pay is forced open \(until noon, by [^\n]+@[^\n]+\), '
                              r'refused by the operator; retry in (1 d|23 h [^\n]+)\n\Z')
        self.answer('breakers', 'disable', 'pay')
        self.fail_calls(6)
        self.answer('breakers', 'observe', 'pay')
        self.answer('breakers', 'trip', 'pay', '--for', '1h')
        self.call_ends(0, '--', 'true')

    def test_verbose_tells_before_and_after(self):
        _, _, err = self.call('-v', '--', 'false')
        self.assertRegex(err, r'\Atrinco: pay is closed\ntrinco: pay: exit code 1 after [^\n]+ '
                              r'counts as failure; 1 of 1 calls failed in the last 5 min; pay is '
                              r'closed\n\Z')

    def test_a_script_takes_the_options_that_govern(self):
        self.call_ends(0, '--window', '20s', '--minimum-calls', '3', '--', 'true')
        self.call_ends(0, '--', 'true')
        self.call_ends(0, '--timeout', '10s', '--failure-exit', '1', '--', 'true')
        breaker = self.show()
        self.assertEqual((20_000, 3), (breaker['options']['window_ms'],
                                       breaker['options']['minimum_calls']))
        self.assertEqual(3, breaker['window']['success'])
        self.answer('breakers', 'set', 'pay', 'failure_count=1')
        self.call_ends(1, '--failure-count', '5', '--', 'false')  # the operator's goes first
        self.assertEqual('open', self.state())

    def test_mistakes(self):
        for words, said in (
                (('--failure-exit', '1,x', '--', 'true'), '0 to 255'),
                (('--failure-exit', '1', '--ignore-exit', '0-9', '--', 'true'), 'one of them'),
                (('--timeout', '3', '--', 'true'), 'no unit'),
                (('--timeout', '-3s', '--', 'true'), 'negative'),
                (('--fallback', '"x', '--', 'true'), 'not closed'),
                (('--code-open', '256', '--', 'true'), '--code-open'),
                (('--failure-rate', '0', '--', 'true'), 'more than 0'),
                (('--half-open-probes', '0', '--', 'true'), '--half-open-probes'),
                (('--on-no-store', 'x', '--', 'true'), 'run or refuse'),
                (('--timout', '3s', '--', 'true'), 'did you mean --timeout?'),
                ((), '--')):
            with self.subTest(words):
                self.assertIn(said, self.mistake('call', 'pay', *words))
        self.assertIn('A-Z', self.mistake('call', 'p y', '--', 'true'))
        self.mistake('call', '--', 'true')
        self.assertFalse(self.file.exists())

    def test_names_are_apart_and_so_are_namespaces(self):
        self.fail_calls(5)
        self.assertEqual(75, self.call('--', 'true')[0])
        self.call_ends(0, '--', 'true', name='payments')
        self.call_ends(0, '--', 'true', name='pa')
        self.call_ends(0, '--namespace', 'other', '--', 'true')


class WithoutStore(Scene):
    def test_a_wrong_store_is_a_mistake(self):
        for url in ('local:relative.db', 'nosuch:', 'zookeeper://h', f'local:{self.folder}/'):
            with self.subTest(url):
                err = self.mistake('call', 'pay', '--breakers', url, '--', 'touch',
                                   str(self.folder / 'ran'))
                self.assertIn('--breakers: ', err)
        self.environment['TRINCO_BREAKERS'] = 'zookeeper://h'
        err = self.mistake('call', 'pay', '--', 'touch', str(self.folder / 'ran'))
        self.assertIn('TRINCO_BREAKERS: there is no driver for the store "zookeeper://h"', err)
        self.assertEqual(1, err.count('no driver'))
        self.assertFalse((self.folder / 'ran').exists())

    def test_a_store_that_is_not_there_keeps_nobody_from_calling(self):
        text = self.folder / 'text.db'
        text.write_text('this is no database, and it is long enough to be one ' * 40)
        for file, said in ((self.folder / 'no/x.db', 'does not exist; make it'),
                           (self.folder, 'is no file'), (text, 'is not a database')):
            with self.subTest(said):
                code, out, err = self.call('--breakers', f'local:{file}', '--', 'sh', '-c',
                                           'echo hi; exit 3')
                self.assertEqual((3, 'hi\n'), (code, out))
                self.assertRegex(err, rf'\Atrinco: --breakers: [^\n]*{said}[^\n]*; the call is '
                                      r'made without its breaker\n\Z')
                err = self.mistake('call', 'pay', '--breakers', f'local:{file}', '--on-no-store',
                                   'refuse', '--', 'echo', 'hi', code=69)
                self.assertIn(said, err)

    def test_no_descriptors_left_is_said_as_it_is(self):
        for most in range(5, 14):
            done = subprocess.run(['sh', '-c', f'ulimit -n {most}; exec "$@"', 'sh', PROGRAM,
                                   'call', 'pay', '--on-no-store', 'refuse', '--', 'true'],
                                  env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=PATIENCE, check=False)
            with self.subTest(most):
                self.assertIn(done.returncode, (0, 69), done.stderr)
                if done.returncode:
                    self.assertIn('Too many open files', done.stderr)

    def test_a_store_that_cannot_be_used_keeps_nobody_from_calling(self):
        url = 'local:/proc/trinco.db'  # a folder in which nobody can make a file
        code, out, err = self.call('--breakers', url, '--', 'sh', '-c', 'echo hi; exit 3')
        self.assertEqual((3, 'hi\n'), (code, out))
        self.assertRegex(err, r'\Atrinco: [^\n]*/proc/trinco.db[^\n]+; the call is made without '
                              r'its breaker\n\Z')
        err = self.mistake('call', 'pay', '--breakers', url, '--on-no-store', 'refuse', '--',
                           'echo', 'hi', code=77)
        self.assertIn('/proc/trinco.db', err)
        code, _, err = self.call('--breakers', url, '--timeout', '50ms', '--', 'sleep', '60')
        self.assertEqual(143, code)
        self.assertIn('--timeout', err)

    def test_a_store_that_does_not_answer_delays_and_is_named(self):
        self.call_ends(0, '--', 'true')
        blocker = sqlite3.connect(self.file, isolation_level=None)
        self.addCleanup(blocker.close)
        running = self.start('call', 'pay', '--store-timeout', '50ms', '--', 'sh', '-c',
                             'echo ready; read x; echo hi', stdin=subprocess.PIPE)
        self.assertEqual('ready\n', running.stdout.readline())
        blocker.execute('BEGIN IMMEDIATE')  # as somebody who is stopped in the middle
        out, err = running.communicate('\n', timeout=PATIENCE)
        self.assertEqual((0, 'hi\n'), (running.returncode, out))
        self.assertRegex(err, r'\Atrinco: could not count the call of pay at local:[^\n]+: '
                              r'[^\n]+\n\Z')
        # Who only reads is answered all the same.
        code, out, err = self.call('--on-no-store', 'refuse', '--', 'echo', 'hi')
        self.assertEqual((0, 'hi\n'), (code, out))
        self.assertRegex(err, r'\Atrinco: could not count the call of pay at [^\n]+\n\Z')
        blocker.execute('ROLLBACK')
        with open(f'{self.file}-gate', 'rb') as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            err = self.mistake('call', 'pay', '--on-no-store', 'refuse', '--', 'echo', 'hi',
                               code=69)
            self.assertIn('is one stopped?', err)
        self.call_ends(0, '--', 'true')
        self.assertIn(self.show()['totals']['success'], (2, 3, 4))  # late ones may have counted

    def call_on_a_full_disk(self):
        """Nothing may grow, as on a disk without space; the command may write where it can."""
        done = subprocess.run(
            ['sh', '-c', 'trap "" XFSZ; ulimit -f 0; exec "$@"', 'sh', PROGRAM, 'call', 'pay',
             '--', 'echo', 'hi'],
            env=self.environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((0, 'hi\n'), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return done.stderr

    def test_a_full_disk_keeps_nobody_from_calling(self):
        self.assertIn('without its breaker', self.call_on_a_full_disk())
        self.call_ends(0, '--', 'true')
        self.call_on_a_full_disk()
        self.answer('breakers', 'trip', 'pay', '--for', '1ms')
        self.wait_for_probes()
        # It can be read that it is open, but a probe cannot be written down.
        self.assertIn('without its breaker', self.call_on_a_full_disk())
        self.call_ends(0, '--', 'true')

    def test_many_processes_at_once_lose_nothing(self):
        def work():
            for _ in range(8):
                self.assertEqual((0, '', ''), self.call('--', 'true'))
        threads = [threading.Thread(target=work) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(48, self.show()['totals']['success'])


if __name__ == '__main__':
    main()
