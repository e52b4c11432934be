#!/usr/bin/env python3
"""`trinco once` and `trinco records` from outside."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from program import ProgramTest  # noqa: E402

PATIENCE = 30  # seconds


def is_alive(pid):
    try:
        with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as stat:
            return stat.read().rsplit(')', 1)[1].split()[0] not in ('Z', 'X')
    except OSError:
        return False


class OnceTest(ProgramTest):
    def wait_until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        raise AssertionError(f'{what} did not come true in {PATIENCE} s')

    def begin(self, key, script, *options):
        """A call under way, whose command has said that it runs."""
        runs = self.folder / 'runs'
        runs.unlink(missing_ok=True)
        under_way = subprocess.Popen(
            [self.program, 'once', key, *options, '--', 'sh', '-c',
             f'echo $$ > {runs}.new; mv {runs}.new {runs}; {script}'],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(under_way.communicate)
        self.addCleanup(lambda: under_way.poll() is None and under_way.kill())
        self.wait_until(runs.exists, 'the command to run')
        return under_way, int(runs.read_text())

    def let_go(self):
        return f'while [ ! -e {self.folder}/go ]; do sleep 0.02; done'

    def state(self, key):
        shown = json.loads(self.answer('records', 'show', key, '-o', 'json'))
        return shown['record']['state']

    def interrupt(self, key):
        """A run whose wrapper was killed; the run's id."""
        under_way, command = self.begin(key, 'sleep 60', '--ttl', '1s')
        run_id = json.loads(self.answer('records', 'show', key, '-o', 'json'))['record']['run_id']
        under_way.kill()
        under_way.wait()
        self.wait_until(lambda: not is_alive(command), 'the command to end with its wrapper')
        self.wait_until(lambda: self.state(key) == 'interrupted', 'the owner to be gone')
        return run_id


class Once(OnceTest):
    def test_it_runs_once_and_its_output_and_code_are_the_answer(self):
        script = f'echo x >> {self.folder}/count; echo out; echo err >&2'
        first = self.run_program('once', 'k', '--', 'sh', '-c', script)
        self.assertEqual((0, 'out\n', 'err\n'), (first.returncode, first.stdout, first.stderr))
        second = self.run_program('once', 'k', '--', 'sh', '-c', script)
        self.assertEqual((0, 'out\n', ''), (second.returncode, second.stdout, second.stderr))
        self.assertEqual('x\n', (self.folder / 'count').read_text())
        self.assertEqual('done', self.state('k'))

    def test_a_failure_is_the_answer_until_another_attempt_is_wanted(self):
        self.assertEqual(7, self.run_program('once', 'k', '--', 'sh', '-c',
                                             'echo no; exit 7').returncode)
        again = self.run_program('once', 'k', '--', 'true')
        self.assertEqual((7, 'no\n'), (again.returncode, again.stdout))
        self.assertRegex(again.stderr, r'\Atrinco: the key "k" failed before[^\n]*7\n\Z')
        self.assertEqual('failed', self.state('k'))
        attempt = self.run_program('once', 'k', '--retry-on-failure', '--', 'sh', '-c',
                                   'echo attempt $TRINCO_ATTEMPT')
        self.assertEqual((0, 'attempt 2\n'), (attempt.returncode, attempt.stdout))

    def test_who_comes_while_it_runs_waits_for_its_result(self):
        runner, _ = self.begin('k', f'{self.let_go()}; echo result')
        self.assertEqual('running', self.state('k'))
        late = self.run_program('once', 'k', '--wait', '100ms', '--', 'true')
        self.assertEqual(75, late.returncode)
        self.assertRegex(late.stderr, r'\Atrinco: [^\n]*still run by somebody else[^\n]*\n\Z')
        others = [subprocess.Popen([self.program, 'once', 'k', '--', 'echo', 'never'],
                                   env=self.environment, stdout=subprocess.PIPE, text=True)
                  for _ in range(5)]
        (self.folder / 'go').touch()
        self.assertEqual('result\n', runner.communicate()[0])
        for other in others:
            self.assertEqual('result\n', other.communicate()[0])
            self.assertEqual(0, other.returncode)

    def test_when_its_owner_dies_everybody_is_told_and_nobody_runs_it(self):
        run_id = self.interrupt('k')
        for _ in range(2):
            told = self.run_program('once', 'k', '--', 'touch', str(self.folder / 'ran'))
            self.assertEqual((79, ''), (told.returncode, told.stdout))
            self.assertRegex(told.stderr, rf'\Atrinco: the key "k" was interrupted: [^\n]*{run_id}'
                                          r"[^\n]*'trinco records resolve k'\n\Z")
        self.assertFalse((self.folder / 'ran').exists())
        self.assertIn('interrupted', self.answer('records', 'ls'))

    def test_who_asks_for_it_runs_it_again_under_the_same_id(self):
        run_id = self.interrupt('k')
        again = self.answer('once', 'k', '--on-interrupted', 'rerun', '--', 'sh', '-c',
                            'echo $TRINCO_RUN_ID $TRINCO_ATTEMPT')
        self.assertEqual(f'{run_id} 2\n', again)

    def test_a_command_that_ends_by_a_signal_is_interrupted(self):
        done = self.run_program('once', 'k', '--', 'sh', '-c', 'kill -TERM $$')
        self.assertEqual(128 + signal.SIGTERM, done.returncode)
        self.assertIn("'trinco records resolve k'", done.stderr)
        self.assertEqual('interrupted', self.state('k'))

    def test_what_cannot_be_started_was_not_done(self):
        self.assertEqual(127, self.run_program('once', 'k', '--', 'no-such-thing').returncode)
        self.assertEqual('undone', self.state('k'))
        self.assertEqual('ok\n', self.answer('once', 'k', '--', 'echo', 'ok'))

    def test_with_verbose_a_waiter_is_told_who_runs_it(self):
        self.begin('k', self.let_go(), '--label', 'the first one')
        waiter = subprocess.Popen([self.program, 'once', 'k', '-v', '--', 'true'],
                                  env=self.environment, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiter.communicate)
        self.addCleanup(waiter.kill)
        self.assertRegex(waiter.stderr.readline(),
                         r'\Atrinco: the key "k": it waits: "the first one" began it at \S+Z '
                         r'as run [0-9a-f]{32}\n\Z')
        (self.folder / 'go').touch()
        self.assertIn('recorded before', waiter.stderr.readline())
        self.assertEqual(0, waiter.wait(PATIENCE))

    def test_a_key_used_with_another_input(self):
        self.answer('once', 'k', '--fingerprint', 'a', '--', 'echo', 'a')
        reused = self.run_program('once', 'k', '--fingerprint', 'b', '--', 'echo', 'b')
        self.assertEqual((64, ''), (reused.returncode, reused.stdout))
        self.assertRegex(reused.stderr, r'\Atrinco: [^\n]*another input[^\n]*\n\Z')

    def test_interrupted_while_waiting_it_ends_at_once(self):
        self.begin('k', self.let_go())
        waiter = subprocess.Popen([self.program, 'once', 'k', '--', 'true'],
                                  env=self.environment, stderr=subprocess.PIPE, text=True)
        self.wait_until(lambda: len(json.loads(self.answer(
            'locks', 'show', '.trinco/once/k', '-o', 'json')).get('waiters', [])) == 1,
            'the waiter to queue')
        waiter.send_signal(signal.SIGTERM)
        said = waiter.communicate(timeout=PATIENCE)[1]
        self.assertIn('interrupted before the command began', said)
        self.assertEqual(128 + signal.SIGTERM, waiter.returncode)
        (self.folder / 'go').touch()

    def test_long_output_passes_whole_and_its_beginning_is_kept(self):
        done = self.run_program('once', 'k', '--', 'sh', '-c',
                                'head -c 200000 /dev/zero | tr "\\0" x')
        self.assertEqual((0, 200_000), (done.returncode, len(done.stdout)))
        self.assertRegex(done.stderr, r'only the first \d+ of 200000 bytes')
        kept = self.answer('once', 'k', '--', 'true')
        self.assertGreater(len(kept), 60_000)
        self.assertLess(len(kept), 65_537)
        alone = self.run_program('once', 'quiet', '--no-output', '--', 'echo', 'seen')
        self.assertEqual('seen\n', alone.stdout)
        self.assertEqual('', self.answer('once', 'quiet', '--', 'true'))

    def test_a_segment_of_one_dot_is_one_here(self):
        for key in '.', 'a/./b', 'a/.', 'a/.lock':
            self.assertEqual('ran\n', self.answer('once', key, '--', 'echo', 'ran'))
            self.assertEqual('done', self.state(key))
            self.assertEqual(f'{key}\n', self.answer('records', 'ls', key, '-o', 'name'))
        self.assertEqual('a/.\na/./b\na/.lock\n',
                         self.answer('records', 'ls', 'a/.*', '-o', 'name'))

    def test_bad_input_is_one_sentence(self):
        for words, part in (((['/k'], 'segments')), ((['k', '--ttl', '1500ms'], 'whole seconds')),
                            ((['k', '--fingerprint', 'x' * 200], '128')),
                            ((['k' * 181], '180')), ((['k', '--on-interrupted', 'x'], 'rerun'))):
            self.assertIn(part, self.mistake('once', *words, '--', 'true'))


class Records(OnceTest):
    def test_resolved_as_done_it_is_the_answer_for_all(self):
        run_id = self.interrupt('pay/1')
        wrong = self.mistake('records', 'resolve', 'pay/1', '--done', 'x', '--run', '0' * 32,
                             '--confirm', 'pay/1', code=75)
        self.assertIn(run_id, wrong)
        said = self.answer('records', 'resolve', 'pay/1', '--done', 'charge 7', '--run', run_id,
                           '--confirm', 'pay/1')
        self.assertEqual('pay/1: done\n', said)
        self.assertEqual('charge 7', self.answer('once', 'pay/1', '--', 'echo', 'never'))

    def test_resolved_as_not_done_it_runs_under_the_same_id(self):
        run_id = self.interrupt('k')
        self.answer('records', 'resolve', 'k', '--not-done', '--confirm', 'k')
        self.assertEqual(f'{run_id}\n', self.answer('once', 'k', '--', 'sh', '-c',
                                                    'echo $TRINCO_RUN_ID'))

    def test_resolved_as_failed(self):
        self.interrupt('k')
        self.answer('records', 'resolve', 'k', '--failed', 'card refused', '--confirm', 'k')
        told = self.run_program('once', 'k', '--', 'true')
        self.assertEqual((1, 'card refused'), (told.returncode, told.stdout))

    def test_what_runs_or_is_settled_is_not_resolved(self):
        self.begin('k', self.let_go())
        alive = self.mistake('records', 'resolve', 'k', '--done', 'x', '--confirm', 'k', code=75)
        self.assertIn('which lives', alive)
        (self.folder / 'go').touch()
        self.wait_until(lambda: self.state('k') == 'done', 'the end')
        self.assertIn('is done already', self.mistake('records', 'resolve', 'k', '--not-done',
                                                      '--confirm', 'k'))
        self.assertIn('nothing is recorded', self.mistake('records', 'resolve', 'other',
                                                          '--not-done', '--confirm', 'other'))
        self.assertIn('--done RESULT', self.mistake('records', 'resolve', 'k'))
        self.assertIn('--done RESULT', self.mistake('records', 'resolve', 'k', '--done', 'x',
                                                    '--not-done'))

    def test_ls_and_show(self):
        for key in ('a/1', 'a/2', 'b'):
            self.answer('once', key, '--', 'echo', key)
        self.assertEqual('a/1\na/2\n', self.answer('records', 'ls', 'a/*', '-o', 'name'))
        everything = json.loads(self.answer('records', '-o', 'json'))
        self.assertEqual(1, everything['schema'])
        self.assertEqual(['a/1', 'a/2', 'b'], [r['key'] for r in everything['records']])
        shown = self.answer('record', 'show', 'b')
        self.assertRegex(shown, r'(?m)^state: +done$')
        self.assertRegex(shown, r'(?m)^result: +b')
        none = self.run_program('records', 'show', 'none')
        self.assertEqual((1, ''), (none.returncode, none.stdout))
        self.assertIn('nothing is recorded', none.stderr)
        none = self.run_program('records', 'show', 'none', '-o', 'json')
        self.assertEqual((1, ''), (none.returncode, none.stderr))
        self.assertEqual({'schema': 1, 'record': {'key': 'none', 'state': 'absent'}},
                         json.loads(none.stdout))
        none = self.run_program('records', 'show', 'none', '-o', 'name')
        self.assertEqual((1, '', ''), (none.returncode, none.stdout, none.stderr))


if __name__ == '__main__':
    OnceTest.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
