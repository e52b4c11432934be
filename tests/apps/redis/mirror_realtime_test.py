#!/usr/bin/env python3
"""What a machine remembers of a Redis, and when it counts: operators' words, options, servers that
take no writes, that die while a breaker is probed, and that are away for a while. Takes the program
and a service."""

import os
import pathlib
import shlex
import signal
import time

from redis_scene import RedisScene, stand_in
from scene import main, wait_until

SOON = ('--store-timeout', '400ms')
POLICY = ('--open-for', '500ms', '--jitter', '0', '--half-open-probes', '1', *SOON)
LONG = ('--open-for', '10min', '--jitter', '0')
# What a call would wait for, were it to wait; a busy machine does not need half of it.
PATIENT = ('--store-timeout', '10s')
IMPATIENCE = 5


class MirrorScene(RedisScene):
    def lose_data(self):
        self.server.command('FLUSHALL')

    def elsewhere(self, *words):
        """On a machine that remembers nothing."""
        mine = self.environment['TRINCO_BREAKERS_MIRROR']
        self.environment['TRINCO_BREAKERS_MIRROR'] = f'local:{self.folder}/elsewhere.db'
        try:
            return self.answer(*words)
        finally:
            self.environment['TRINCO_BREAKERS_MIRROR'] = mine

    def timed(self, *words, **options):
        began = time.monotonic()
        code, _, err = self.call(*words, **options)
        return code, err, time.monotonic() - began

    def begin_long(self, *words, fallback=False):
        """A call whose command, or fallback, runs; and what ends it."""
        gate = self.folder / 'gate'
        script = f'touch {gate}; while [ -e {gate} ]; do sleep 0.01; done'
        command = ('sh', '-c', script)
        last = ('--fallback', shlex.join(command), '--', 'true') if fallback else ('--', *command)
        process = self.start('call', 'pay', *words, *last)
        wait_until(gate.exists, 'the command')

        def finish():
            gate.unlink()
            self.assertEqual(0, process.wait(), process.stderr.read())
        return finish


class Words(MirrorScene):
    def test_a_word_is_not_undone_by_what_was_remembered_before(self):
        for verb, undo in (('force-open', ('resume', 'pay')), ('trip', ('reset', 'pay')),
                           ('force-open', ('forget', 'pay', '--confirm', 'pay')),
                           ('trip', ('forget', 'pay', '--confirm', 'pay'))):
            for lose in (self.lose_data, self.server.kill):
                with self.subTest(verb=verb, undo=undo[0], lose=lose.__name__):
                    lasts = ('--for', '10min')
                    self.answer('breakers', verb, 'pay', '--create', *lasts)
                    self.assertEqual(75, self.call('--', 'true')[0])
                    self.answer('breakers', *undo)
                    lose()
                    self.assertEqual(0, self.call('--', 'true')[0])
                    if lose != self.lose_data:
                        self.server.start()
                    self.assertEqual(0, self.call('--', 'true')[0])
                    self.assertEqual('closed', self.state())

    def test_a_word_holds_also_when_no_call_has_heard_it(self):
        for lose in (self.lose_data, self.server.kill):
            self.answer('breakers', 'force-open', 'pay', '--create', '--reason', 'noon')
            lose()
            code, _, err = self.call('--', 'true')
            self.assertEqual(75, code, err)
            self.assertIn('noon', err)

    def test_a_server_that_has_forgotten_is_spoken_to_like_any_other(self):
        self.answer('breakers', 'force-open', 'pay', '--create')
        self.assertEqual(75, self.call('--', 'true')[0])
        self.lose_data()
        self.assertIn('pay is closed', self.answer('breakers', 'resume', 'pay'))
        self.assertIsNone(self.show()['override'])
        self.call_ends(0, '--', 'true')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.lose_data()
        self.answer('breakers', 'unset', 'pay')
        self.assertFalse(self.show()['options_set'])

    def test_the_later_word_of_somebody_else_wins_over_an_older_one(self):
        self.fail_calls(5, *LONG)
        self.answer('breakers', 'force-open', 'pay')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.assertEqual(75, self.call('--', 'true')[0])
        self.lose_data()
        self.elsewhere('breakers', 'observe', 'pay', '--create', '--reason', 'later')
        self.elsewhere('breakers', 'set', 'pay', 'window=40s')
        self.assertEqual(1, self.call('--', 'false')[0])
        shown = self.show()
        self.assertEqual('observing', shown['in_force'])
        self.assertIn('later', shown['override']['reason'])
        self.assertEqual(40_000, shown['options']['window_ms'])
        # What nobody has said anything about since is that of before.
        self.assertEqual('open', shown['state'])
        self.elsewhere('breakers', 'resume', 'pay')
        self.assertEqual(75, self.call('--', 'true')[0])

    def test_set_alone_says_nothing_about_an_override(self):
        self.answer('breakers', 'trip', 'pay', '--create', '--for', '10min')
        self.answer('breakers', 'force-open', 'pay')
        self.lose_data()
        self.elsewhere('breakers', 'set', 'pay', 'window=40s', '--create')
        self.assertEqual(75, self.call('--', 'true')[0])
        shown = self.show()
        self.assertEqual(('forced_open', 40_000), (shown['in_force'],
                                                   shown['options']['window_ms']))

    def test_a_configuration_that_can_be_read_once_holds_for_all_that_a_word_does(self):
        text = f'[breakers]\nstore = "{self.server.url}"\nmirror = "{self.mirror}"\n'

        def by_pipe(*words):
            named = {}
            for name in ('BREAKERS', 'BREAKERS_MIRROR', 'CONFIG'):
                named[f'TRINCO_{name}'] = self.environment.pop(f'TRINCO_{name}')
            reading, writing = os.pipe()
            try:
                os.write(writing, text.encode())
                os.close(writing)
                done = self.run_program('breakers', *words, '--config', f'/dev/fd/{reading}',
                                        pass_fds=[reading])
            finally:
                os.close(reading)
                self.environment.update(named)
            self.assertEqual((0, ''), (done[0], done[2]), words)

        by_pipe('trip', 'pay', '--create', '--for', '10min')
        self.assertEqual(('open', 'open'), (self.state(), self.local()['in_force']))
        by_pipe('set', 'pay', 'window=20s')
        self.assertTrue(self.show()['options_set'] and self.local()['options_set'])
        by_pipe('forget', 'pay', '--confirm', 'pay')
        self.assertEqual(('closed', 'closed'), (self.state(), self.local()['in_force']))

    def test_what_was_not_there_is_said(self):
        self.call_ends(0, '--', 'true')
        self.assertIn('pay had no override to end: pay is closed',
                      self.answer('breakers', 'resume', 'pay'))
        self.assertIn('nothing was set', self.answer('breakers', 'unset', 'pay'))
        self.assertNotIn('nothing', self.answer('breakers', 'forget', 'pay', '--confirm', 'pay'))
        self.assertIn('pay had nothing to forget',
                      self.answer('breakers', 'forget', 'pay', '--confirm', 'pay'))


class Options(MirrorScene):
    def test_set_options_come_back_as_set(self):
        self.call_ends(0, '--window', '60s', '--', 'true')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.call_ends(0, '--window', '60s', '--', 'true')
        self.lose_data()
        self.call_ends(0, '--window', '60s', '--', 'true')
        shown = self.show()
        self.assertTrue(shown['options_set'])
        self.assertEqual(20_000, shown['options']['window_ms'])
        # And govern while the server is away.
        self.server.kill()
        self.call('--window', '60s', '--', 'true')
        here = self.local()
        self.assertTrue(here['options_set'])
        self.assertEqual(20_000, here['options']['window_ms'])

    def test_what_was_unset_does_not_come_back(self):
        self.call_ends(0, '--window', '60s', '--', 'true')
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.call_ends(0, '--', 'true')
        self.answer('breakers', 'unset', 'pay')
        self.lose_data()
        self.call_ends(0, '--', 'true')
        shown = self.show()
        self.assertFalse(shown['options_set'])
        self.assertEqual(60_000, shown['options']['window_ms'])
        self.server.kill()
        self.call(*SOON, '--', 'true')
        self.assertFalse(self.local()['options_set'])


class NoWrites(MirrorScene):
    def refuse_writes(self):
        self.server.command('CONFIG', 'SET', 'maxmemory', '1')

    def take_writes(self):
        self.server.command('CONFIG', 'SET', 'maxmemory', '0')

    def opens_here(self, why):
        """Failing calls of which the server does not hear, until one is refused."""
        took = []
        while True:
            code, err, seconds = self.timed(*LONG, *PATIENT, '--', 'false')
            self.assertIn(why, err)
            self.assertIn('this machine', err)
            self.assertIn(f"'trinco doctor --breakers {self.server.url}'", err)
            if code == 75:
                break
            self.assertEqual(1, code, err)
            took.append(seconds)
            self.assertLessEqual(len(took), 5, 'it does not open')
        self.assertGreaterEqual(len(took), 3)
        self.assertLess(min(took), IMPATIENCE)
        self.assertIn('refused by the breaker that stands in on this machine', err)
        self.assertEqual('open', self.local()['in_force'])

    def test_a_full_server_does_not_hide_that_calls_fail(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.refuse_writes()
        self.opens_here('maxmemory')
        self.assertEqual('closed', self.state())
        # Once it counts again it decides again.
        self.take_writes()
        wait_until(lambda: self.call(*LONG, '--', 'true')[0] == 0, 'the decision of the server')
        self.call_ends(0, *LONG, '--', 'true')
        self.assertEqual('closed', self.local()['in_force'])

    def test_a_replica_says_what_it_is(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.server.command('REPLICAOF', '127.0.0.1', '1')
        self.opens_here('replica')
        code, _, err = self.run_program('breakers', 'trip', 'pay')
        self.assertEqual(69, code)
        self.assertIn('replica', err)
        self.assertIn('nothing was changed', err)

    def test_a_call_that_began_before_does_not_close_what_has_opened_since(self):
        self.call_ends(0, *LONG, '--', 'true')
        finish = self.begin_long(*LONG)
        self.refuse_writes()
        self.opens_here('maxmemory')
        finish()
        self.assertEqual('open', self.local()['in_force'])
        self.assertEqual(75, self.call(*LONG, '--', 'true')[0])

    def test_a_call_that_was_ended_before_its_command_ran_says_nothing_of_the_server(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.refuse_writes()
        self.opens_here('maxmemory')
        self.server.pause()
        call = self.start('call', 'pay', *LONG, *PATIENT, '--', 'true')
        status = pathlib.Path(f'/proc/{call.pid}/status')
        wait_until(lambda: 'Threads:\t1\n' not in status.read_text(), 'its store')
        call.send_signal(signal.SIGTERM)
        self.server.go_on()
        self.assertEqual(128 + signal.SIGTERM, call.wait(), call.stderr.read())
        self.assertEqual('open', self.local()['in_force'])
        self.assertEqual(75, self.call(*LONG, '--', 'false')[0])

    def test_a_word_that_no_call_had_heard_holds_from_the_first_one_that_is_not_counted(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.elsewhere('breakers', 'trip', 'pay', '--for', '10min')
        self.refuse_writes()
        self.assertEqual(75, self.call(*LONG, '--', 'true')[0])
        self.server.kill()
        self.assertEqual(75, self.call(*LONG, *SOON, '--', 'true')[0])

    def test_operators_are_heard_there_all_the_same(self):
        self.call_ends(0, *LONG, '--', 'true')
        self.answer('breakers', 'disable', 'pay')
        self.refuse_writes()
        for _ in range(7):
            self.assertEqual(1, self.call(*LONG, '--', 'false')[0])
        self.take_writes()
        self.answer('breakers', 'resume', 'pay')
        self.answer('breakers', 'force-open', 'pay')
        self.refuse_writes()
        self.assertEqual(75, self.call(*LONG, '--', 'true')[0])


class HalfOpen(MirrorScene):
    def test_probes_of_a_server_that_died_bind_nobody(self):
        self.fail_calls(5, *POLICY)
        self.wait_for_probes()
        finish = self.begin_long(*POLICY)
        self.assertIn('all its probes are out', self.call(*POLICY, '--', 'true')[2])
        self.server.kill()
        wait_until(lambda: self.call(*POLICY, '--', 'true')[0] == 0, 'a probe of this machine')
        self.assertEqual('closed', self.local()['in_force'])
        # Nor does it take back what has recovered here, once it ends.
        finish()
        self.assertEqual('closed', self.local()['in_force'])

    def test_an_opening_that_was_heard_of_ends_here_too(self):
        self.fail_calls(5, *POLICY)
        self.call(*POLICY, '--', 'true')
        self.server.kill()
        wait_until(lambda: self.call(*POLICY, '--', 'true')[0] == 0, 'a probe of this machine')


class Away(MirrorScene):
    def test_a_call_that_began_before_does_not_close_what_has_opened_since(self):
        self.call_ends(0, *LONG, *SOON, '--', 'true')
        finish = self.begin_long(*LONG, *SOON)
        self.server.kill()
        wait_until(lambda: self.call(*LONG, *SOON, '--', 'false')[0] == 75, 'its opening')
        before = self.local()['totals']['success']
        finish()
        self.assertEqual('open', self.local()['in_force'])
        self.assertEqual(before + 1, self.local()['totals']['success'])

    def test_a_fallback_that_began_before_does_not_open_what_has_recovered_since(self):
        self.fail_calls(5, *POLICY)
        self.answer('breakers', 'trip', 'pay', '--for', '3s')
        finish = self.begin_long(*POLICY, fallback=True)
        self.server.kill()
        wait_until(lambda: self.call(*POLICY, '--', 'true')[0] == 0, 'a probe of this machine')
        finish()
        self.assertEqual('closed', self.local()['in_force'])

    def test_what_refuses_the_connection_is_named_at_once(self):
        self.call_ends(0, '--', 'true')
        self.server.kill()
        code, err, took = self.timed(*PATIENT, '--', 'true')
        self.assertEqual(0, code)
        self.assertIn('connection refused', err)
        self.assertIn(f"'trinco doctor --breakers {self.server.url}'", err)
        self.assertLess(took, IMPATIENCE)
        for words in (('breakers',), ('breakers', 'trip', 'pay')):
            began = time.monotonic()
            code, _, err = self.run_program(*words)
            self.assertEqual(69, code)
            self.assertIn('connection refused', err)
            self.assertLess(time.monotonic() - began, 4)  # of 5 s

    def test_one_call_waits_for_a_silent_server_and_the_next_ones_hardly(self):
        self.call_ends(0, '--', 'true')
        self.server.pause()
        first = self.timed('--', 'true')[2]
        self.assertGreater(first, 0.9)
        later = [self.timed('--', 'true', name=name)[2] for name in ('pay', 'pay', 'other')]
        self.assertLess(min(later), first - 0.2)
        self.server.go_on()
        wait_until(lambda: self.call('--', 'true')[2] == '', 'an answer of the server')

    def test_refuse_means_that_the_server_must_be_asked(self):
        self.call_ends(0, '--', 'true')
        self.server.kill()
        ran = self.folder / 'ran'
        words = ('--on-no-store', 'refuse', '--', 'touch', str(ran))
        self.assertEqual(69, self.call(*SOON, *words)[0])
        self.server.start()
        self.server.command('CONFIG', 'SET', 'requirepass', 'x')
        self.assertEqual(77, self.call(*SOON, *words)[0])
        self.assertFalse(ran.exists())

    def test_a_password_that_cannot_be_read_leaves_the_mirror(self):
        self.fail_calls(5, *LONG)
        self.environment['TRINCO_BREAKERS_PASSWORD_FILE'] = str(self.folder / 'none')
        code, _, err = self.call(*LONG, '--', 'true')
        self.assertEqual(75, code, err)
        for part in ('password', 'No such file', 'TRINCO_BREAKERS_PASSWORD_FILE'):
            self.assertIn(part, err)


class Texts(RedisScene):
    def test_a_reason_is_utf8(self):
        self.call_ends(0, '--', 'true')
        for words in (('breakers', 'trip', 'pay', '--reason'),
                      ('locks', 'break', 'pay', '--reason'), ('lock', 'pay', '--label')):
            tail = ('--', 'true') if words[0] == 'lock' else ()
            code, out, err = self.run_program(*map(os.fsencode, words), b'caf\xe9', *tail)
            self.assertEqual((64, ''), (code, out), err)
            self.assertIn('UTF-8', err)
        self.assertIn('café', self.answer('breakers', 'trip', 'pay', '--reason', 'café'))

    def test_the_names_of_other_libraries_are_translated(self):
        self.call_ends(0, '--', 'true')
        err = self.mistake('breakers', 'set', 'pay', 'error_threshold_percentage=50')
        self.assertIn('failure_rate', err)
        self.assertIn('open_for', self.mistake('breakers', 'set', 'pay', 'reset_timeout=5s'))


if __name__ == '__main__':
    main()
