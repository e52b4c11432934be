#!/usr/bin/env python3
"""`trinco breakers watch` on a real Redis: what no message tells. Takes the program, a service."""

import json
import time

from redis_scene import RedisScene
from scene import main, wait_until


class Watch(RedisScene):
    def watch(self, *words):
        process = self.start('breakers', 'watch', *words)
        return process, iter(process.stdout.readline, '')

    def change(self, lines):
        said = json.loads(next(lines))
        breaker = said['breaker'] or {}
        return said['change'], breaker.get('in_force')

    def test_an_override_that_runs_out_is_told(self):
        self.call_ends(0, '--', 'true')
        _, lines = self.watch('-o', 'json')
        self.assertEqual(('begin', 'closed'), self.change(lines))
        self.answer('breakers', 'force-open', 'pay', '--for', '700ms')
        began = time.monotonic()
        self.assertEqual(('override', 'forced_open'), self.change(lines))
        self.assertEqual(('override', 'closed'), self.change(lines))
        self.assertGreater(time.monotonic() - began, 0.4)
        # Once: that it is written, too, when somebody calls, is no change.
        self.call_ends(0, '--', 'true')
        self.answer('breakers', 'observe', 'pay')
        self.assertEqual(('override', 'observing'), self.change(lines))

    def test_one_that_is_made_longer_does_not_end_before(self):
        self.call_ends(0, '--', 'true')
        self.answer('breakers', 'force-open', 'pay', '--for', '700ms')
        _, lines = self.watch('-o', 'json')
        self.assertEqual(('begin', 'forced_open'), self.change(lines))
        self.answer('breakers', 'force-open', 'pay', '--for', '1h', '--reason', 'longer')
        self.assertEqual(('override', 'forced_open'), self.change(lines))
        wait_until(lambda: self.show()['override']['remaining_ms'] < 3_598_800, 'a second')
        self.answer('breakers', 'resume', 'pay')
        self.assertEqual(('override', 'closed'), self.change(lines))

    def test_a_server_that_was_emptied(self):
        self.call_ends(0, '--', 'true')
        (_, lines), (_, table) = self.watch('-o', 'json'), self.watch()
        self.assertEqual(('begin', 'closed'), self.change(lines))
        self.assertIn('pay is closed', next(table))
        self.server.command('FLUSHALL')
        self.assertEqual(('store_emptied', None), self.change(lines))
        self.assertIn('has no breakers any more in the namespace default', next(table))
        self.call_ends(0, '--', 'true')
        self.assertEqual(('begin', 'closed'), self.change(lines))
        self.answer('breakers', 'trip', 'pay')
        self.assertEqual(('state', 'open'), self.change(lines))

    def test_what_is_not_there_yet_is_said(self):
        self.call_ends(0, '--', 'true')
        process, lines = self.watch('nosuch', 'pay', 'rate*', '-o', 'json')
        self.assertEqual(('begin', 'closed'), self.change(lines))
        for word in ('nosuch', 'rate*'):
            self.assertIn(f'has no breaker "{word}" yet in the namespace default; waiting',
                          process.stderr.readline())
        self.answer('breakers', 'trip', 'nosuch', '--create')
        self.assertEqual(('begin', 'open'), self.change(lines))

    def test_an_outage_counts_from_the_last_word_of_the_server(self):
        self.call_ends(0, '--', 'true')
        _, lines = self.watch('-o', 'json')
        self.assertEqual(('begin', 'closed'), self.change(lines))
        self.answer('breakers', 'trip', 'pay')
        heard = json.loads(next(lines))
        self.server.kill()
        lost = json.loads(next(lines))
        self.assertEqual('store_lost', lost['change'])
        self.assertGreaterEqual(lost['since'][:-2], heard['at'][:-2])


if __name__ == '__main__':
    main()
