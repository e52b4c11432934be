#!/usr/bin/env python3
"""Operators are neither voters nor instances, whatever they say, also on a server that has lost its
data: or a machine that only has a terminal would count in the quorum. Takes the program and a
service."""

import signal

from redis_scene import RedisScene, Service
from scene import main, wait_until

VERBS = (('trip', 'pay'), ('reset', 'pay'), ('force-open', 'pay'), ('disable', 'pay'),
         ('observe', 'pay'), ('resume', 'pay'), ('set', 'pay', 'window=20s'), ('unset', 'pay'),
         ('forget', 'pay', '--confirm', 'pay'))


class Operators(RedisScene):
    def setUp(self):
        super().setUp()
        self.environment['TRINCO_INSTANCE'] = 'laptop'
        self.service = Service(self, self.server.url, 'shop')
        self.service.ask('success')
        wait_until(lambda: self.server.command('KEYS', '*{pay}*'), 'the record')

    def voters(self):
        shown = self.show()
        return shown['voters']['live'], {i['voter'] for i in shown['instances']}

    def lose_data(self, words):
        """While no process is there to bring it back."""
        self.service.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.service.process.send_signal, signal.SIGCONT)
        self.server.command('FLUSHALL')
        self.answer('breakers', *words)
        self.assertEqual([], self.server.command('HKEYS', 'trinco:1:default:{pay}:voters'), words)
        self.assertEqual([], self.server.command('ZRANGE', 'trinco:1:default:{pay}:instances',
                                                 '0', '-1'), words)
        self.service.process.send_signal(signal.SIGCONT)

    def test_no_verb_makes_a_voter(self):
        for words in VERBS:
            self.answer('breakers', *words)
            self.assertEqual((1, {'shop'}), self.voters(), words)

    def test_no_verb_makes_a_voter_of_a_server_that_has_lost_its_data(self):
        for words in VERBS:
            self.answer('breakers', 'set', 'pay', 'window=20s')
            self.answer('breakers', 'force-open', 'pay')
            self.lose_data(words)
            wait_until(lambda: self.voters() == (1, {'shop'}), words[0])
            self.assertNotIn('other options than the latest',
                             self.answer('breakers', 'show', 'pay'))

    def test_a_reason_that_says_nothing_is_none(self):
        for reason in ('', '  '):
            said = self.mistake('breakers', 'force-open', 'pay', '--reason', reason)
            self.assertIn('the reason is empty', said)
        self.assertEqual('closed', self.state())

    def test_what_was_lost_is_there_before_the_word(self):
        self.answer('breakers', 'set', 'pay', 'window=20s')
        self.answer('breakers', 'trip', 'pay', '--for', '10min')
        self.lose_data(('observe', 'pay'))
        shown = self.show()
        self.assertEqual(('open', 'observing', True), (shown['state'], shown['in_force'],
                                                       shown['options_set']))
        self.assertEqual(20_000, shown['options']['window_ms'])


if __name__ == '__main__':
    main()
