"""`trinco once` whose session is lost while its command runs, on whichever store keeps it: who ran
it and whoever asks next are told what is known, and not that somebody else runs it."""

import concurrent.futures
import signal

from scene import PROGRAM, is_alive, wait_until

RUN = '[0-9a-f]{32}'
BEGAN = rf'"me" began it at \S+Z as run {RUN}'
GONE = BEGAN + ', and died, or lost its lock, before it recorded an end'
LOST = 'was lost(, with its session)?'
RESOLVE = "'trinco records resolve {}'"


class LostRuns:
    """For a Scene with run_program and end_session_of(key), of who runs it. `TTL`: the least that
    the store grants, in seconds; `LIVES`: what is said of a session that has not ended."""

    def begin(self, key, script='sleep 60'):
        """A call whose command runs."""
        under_way = self.start_command([*self.once(key, '--label', 'me'), '--', 'sh', '-c',
                                        f'echo $$; {script}'])
        under_way.command = int(under_way.line())
        return under_way

    def once(self, key, *options):
        return [PROGRAM, 'once', key, '--ttl', f'{self.TTL}s', *options]

    def ask(self, key, *options, wait='0s'):
        """Somebody who asks next: its exit code, and the one line that it says."""
        done = self.run_words([*self.once(key, '--wait', wait, *options), '--', 'echo', 'ran'])
        self.assertEqual('', done.stdout)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return done.returncode, done.stderr.strip()

    def assert_told_as_interrupted(self, key):
        code, said = self.ask(key)
        self.assertEqual(79, code, said)
        self.assertRegex(said, 'was interrupted: ' + GONE)
        self.assertIn('find out whether it was done', said)
        self.assertTrue(said.endswith(RESOLVE.format(key)), said)

    def resolve(self, key):
        done = self.run_program('records', 'resolve', key, '--not-done', '--confirm', key)
        self.assertEqual((0, ''), (done.returncode, done.stderr))

    def assert_who_ran_it_is_told(self, runner, key):
        self.assertEqual(76, runner.end(), runner.said)
        self.assertFalse(is_alive(runner.command))
        self.assertRegex(runner.said, f'its lock {LOST}, so the command gets TERM')
        last = runner.said.splitlines()[-1]
        self.assertRegex(last, f'is interrupted: the command was ended because its lock {LOST}, '
                               'and nobody knows whether it had done it')
        self.assertIn(f"'trinco records show {key}'", last)
        self.assertIn(RESOLVE.format(key), last)

    def lose(self, key):
        """A run whose session is ended, as by an operator."""
        runner = self.begin(key)
        self.end_session_of(key)
        self.assert_who_ran_it_is_told(runner, key)

    def test_its_session_is_ended(self):
        self.lose('k')
        self.assert_told_as_interrupted('k')

    def test_of_many_who_ask_at_once_none_takes_another_for_who_ran_it(self):
        self.lose('many')
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            told = list(pool.map(lambda _: self.ask('many'), range(40)))
        self.assertIn(79, [code for code, _ in told])
        for code, said in told:
            self.assertIn(code, (75, 79), said)
            self.assertNotIn('still run', said)

    def test_its_owner_is_killed(self):
        runner = self.begin('killed')
        runner.signal(signal.SIGKILL)
        runner.end()
        wait_until(lambda: not is_alive(runner.command), 'the command ends with its wrapper')
        # As far as the store knows it lives: that is told, and how long it can last.
        code, said = self.ask('killed')
        self.assertEqual(75, code, said)
        self.assertRegex(said, 'is still run by somebody else after 0 ms: ' + BEGAN + '; ' +
                         self.LIVES + "; 'trinco records show killed' tells")
        done = self.run_program('records', 'resolve', 'killed', '--not-done', '--confirm', 'killed')
        self.assertEqual(75, done.returncode)
        self.assertRegex(done.stderr, 'which lives, as far as is known; ' + self.LIVES +
                         '; wait until it has ended')
        wait_until(lambda: 'interrupted' in self.run_program('records', 'show', 'killed').stdout,
                   'the end of its session')
        self.assert_told_as_interrupted('killed')
