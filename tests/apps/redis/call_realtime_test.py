#!/usr/bin/env python3
"""`trinco call` on a real Redis that is killed, paused, and comes back empty: what it decides, how
long that takes, and what it says. Takes the program and a service."""

import time

from redis_scene import RedisScene, stand_in
from scene import main, wait_until

SOON = ('--store-timeout', '400ms')
POLICY = ('--open-for', '500ms', '--jitter', '0', '--half-open-probes', '1', *SOON)
LONG = ('--open-for', '10min', '--jitter', '0', *SOON)
DEFAULT_TIMEOUT = 1.0
# Beyond the time for which a call waits once; a second wait of the default one would show.
SLACK = 0.9


class Call(RedisScene):
    def alone(self, code, *words):
        """A call that decides without its server, in time, and says so once."""
        began = time.monotonic()
        got, _, err = self.call(*words)
        took = time.monotonic() - began
        self.assertEqual(code, got, err)
        said = [line for line in err.splitlines() if 'decides and counts by itself' in line]
        self.assertEqual(1, len(said), err)
        self.assertIn(self.server.url, said[0])
        self.assertIn(f'({self.mirror}, namespace {stand_in(self.server.url)})', said[0])
        self.assertLess(took, (0.4 if '--store-timeout' in words else DEFAULT_TIMEOUT) + SLACK)
        return err

    def wait_for_server(self):
        wait_until(lambda: self.call('--', 'true')[2] == '', 'an answer of the server')

    def test_what_is_decided_there_is_mirrored_here(self):
        self.call_ends(0, '--', 'true')
        self.fail_calls(3)
        here, there = self.local(), self.show()
        for what in ('success', 'failure'):
            self.assertEqual(there['window'][what], here['window'][what])
        self.assertEqual((1, 3), (there['window']['success'], there['window']['failure']))
        self.answer('breakers', 'force-open', 'pay', '--reason', 'noon')
        self.assertEqual(75, self.call('--', 'true')[0])
        self.assertEqual('forced_open', self.local()['in_force'])
        self.answer('breakers', 'resume', 'pay')
        self.call(*POLICY, '--', 'true')
        self.assertIsNone(self.local()['override'])

    def test_killed_while_open_it_stays_open_and_recovers_after_its_time(self):
        self.fail_calls(5, *LONG)
        self.assertEqual('open', self.state())
        self.server.kill()
        self.alone(75, *LONG, '--', 'true')
        self.assertEqual('open', self.local()['in_force'])

    def test_killed_while_closed_it_opens_and_recovers_here(self):
        self.call_ends(0, *POLICY, '--', 'true')
        self.server.kill()
        for _ in range(4):
            self.alone(1, *POLICY, '--', 'false')
        self.assertEqual('open', self.local()['in_force'])
        self.assertEqual(4, self.local()['totals']['failure'])
        wait_until(lambda: self.local()['remaining_ms'] == 0, 'the end of the opening')
        self.alone(0, *POLICY, '--', 'true')  # a probe
        self.assertEqual('closed', self.local()['in_force'])
        # What one machine decided alone is not the fleet's business.
        self.server.start()
        self.wait_for_server()
        self.assertEqual(0, self.show()['totals']['failure'])

    def test_paused_it_is_decided_in_time_and_goes_on_afterwards(self):
        self.call_ends(0, '--', 'true')
        self.server.pause()
        self.alone(0, '--', 'true')
        self.alone(1, *SOON, '--', 'false')
        self.server.go_on()
        self.wait_for_server()
        self.assertEqual('closed', self.state())

    def test_begun_anew_and_empty_it_learns_that_the_breaker_is_open(self):
        self.fail_calls(5, *LONG)
        before = self.show()
        self.server.kill()
        self.alone(75, *LONG, '--', 'true')
        self.server.start()
        wait_until(lambda: 'itself' not in self.call(*LONG, '--', 'true')[2], 'the server')
        after = self.show()
        self.assertEqual(('open', before['era']), (after['in_force'], after['era']))
        self.assertGreater(after['remaining_ms'], 60_000)
        self.assertEqual(before['options'], after['options'])

    def test_an_opening_of_this_machine_alone_is_not_told_to_the_server(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.server.kill()
        for _ in range(4):
            self.alone(1, *LONG, '--', 'false')
        self.assertEqual('open', self.local()['in_force'])
        self.server.start()
        self.wait_for_server()
        self.assertEqual('closed', self.state())
        self.assertEqual('closed', self.local()['in_force'])

    def test_died_while_the_command_ran(self):
        self.call_ends(0, '--', 'true')
        gate = self.folder / 'gate'
        call = self.start('call', 'pay', *SOON, '--', 'sh', '-c',
                          f'touch {gate}; while [ -e {gate} ]; do sleep 0.01; done; exit 3')
        wait_until(gate.exists, 'the command')
        self.server.kill()
        gate.unlink()
        self.assertEqual(3, call.wait())
        self.assertIn('this machine has counted it', call.stderr.read())
        self.assertEqual(1, self.local()['window']['failure'])

    def test_what_one_server_says_is_not_told_to_another_one(self):
        staging, production = self.server, self.begin_server('production')
        self.fail_calls(5, *LONG)
        self.assertEqual('open', self.state())
        for other in (production.url, staging.url + '/1'):
            self.environment['TRINCO_BREAKERS'] = other
            self.call_ends(0, *LONG, '--', 'true')
            self.assertEqual('closed', self.state(), other)
        self.environment['TRINCO_BREAKERS'] = staging.url
        self.assertEqual('open', self.state())
        # Nor does the one stand in for the other.
        self.environment['TRINCO_BREAKERS'] = production.url
        self.server = production
        production.kill()
        self.alone(0, *LONG, '--', 'true')

    def test_the_longest_namespace_has_a_mirror_too(self):
        self.environment['TRINCO_NAMESPACE'] = 'n' * 64
        self.fail_calls(5, *LONG)
        self.server.kill()
        self.assertEqual(75, self.call(*LONG, '--', 'true')[0])
        self.server.start()
        wait_until(lambda: 'itself' not in self.call(*LONG, '--', 'true')[2], 'the server')
        self.assertEqual('open', self.state())

    def test_wrong_password_is_said_and_the_call_is_made(self):
        self.call_ends(0, '--', 'true')
        self.server.command('CONFIG', 'SET', 'requirepass', 'x')
        began = time.monotonic()
        code, _, err = self.call('--', 'true')
        self.assertEqual(0, code)
        self.assertIn('trinco doctor', err)
        self.assertLess(time.monotonic() - began, DEFAULT_TIMEOUT + SLACK)

    def test_without_a_mirror_it_runs_unprotected_or_not_at_all(self):
        self.environment['TRINCO_BREAKERS_MIRROR'] = 'none'
        self.call_ends(0, '--', 'true')
        self.server.kill()
        code, _, err = self.call(*SOON, '--', 'true')
        self.assertEqual(0, code)
        self.assertIn('without its breaker', err)
        self.assertEqual(69, self.call(*SOON, '--on-no-store', 'refuse', '--', 'true')[0])

    def test_two_scripts_with_different_options_are_told(self):
        self.call_ends(0, '--window', '60s', '--', 'true')
        self.call_ends(0, '--window', '60s', '--', 'true')
        code, _, err = self.call('--window', '30s', '--', 'true')
        self.assertEqual(0, code)
        self.assertRegex(err, r"\Atrinco: this call's options of pay replace those of another "
                              r'process: window 30 s \(there 1 min\)[^\n]*\n\Z')
        self.call_ends(0, '--window', '30s', '--', 'true')
        self.call_ends(0, '--', 'true')


if __name__ == '__main__':
    main()
