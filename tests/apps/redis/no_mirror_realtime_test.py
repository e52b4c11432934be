#!/usr/bin/env python3
"""A machine whose mirror cannot be opened says so, and one that stands in for a server is named and
can be looked at. Takes the program and a service."""

import json
import shlex

from redis_scene import RedisScene, stand_in
from scene import main

SOON = ('--store-timeout', '400ms')


class NoMirror(RedisScene):
    def setUp(self):
        super().setUp()
        self.environment['TRINCO_BREAKERS_MIRROR'] = f'local:{self.folder}/nofolder/x.db'

    def test_the_doctor_warns(self):
        code, out, _ = self.run_program('doctor', '-o', 'json', '--strict')
        found = {one['check']: one for one in json.loads(out)['stores'][0]['checks']}
        self.assertEqual((1, 'warn'), (code, found['mirror']['level']))
        self.assertIn('nofolder', found['mirror']['sentence'])
        self.assertEqual('make it', found['mirror']['advice'])
        self.environment['TRINCO_BREAKERS_MIRROR'] = self.mirror
        self.assertNotIn('"mirror"', self.answer('doctor', '-o', 'json'))

    def test_a_call_says_why_it_is_made_without_its_breaker(self):
        self.call_ends(0, '--', 'true')
        _, _, err = self.call('-v', '--', 'true')
        self.assertIn("this machine's mirror cannot be used: ", err)
        self.assertIn('nofolder', err)
        self.server.kill()
        code, _, err = self.call(*SOON, '--', 'true')
        self.assertEqual(0, code)
        self.assertRegex(err, r"the call is made without its breaker, as this machine's mirror "
                              r"cannot be used: [^\n]*nofolder")


class StandsIn(RedisScene):
    def test_it_is_named_and_can_be_looked_at(self):
        self.call_ends(0, '--', 'true')
        self.server.kill()
        self.answer('breakers', 'trip', 'pay', '--for', '1h', '--breakers', self.mirror,
                    '--namespace', stand_in(self.server.url))
        code, _, err = self.call(*SOON, '--', 'true')
        self.assertEqual(75, code)
        self.assertIn('refused by the breaker that stands in on this machine', err)
        for words in (('ls',), ('force-open', 'pay'), ('set', 'pay', 'window=20s')):
            said = self.mistake('breakers', *words, code=69)
            self.assertIn('says more', said)
            line = said.split("is shown by '")[1].split("'\n")[0]
            self.assertRegex(self.answer(*shlex.split(line)[1:]), r'(?m)^pay +open ')
        self.environment['TRINCO_BREAKERS_MIRROR'] = 'none'
        self.assertNotIn('is shown by', self.mistake('breakers', 'ls', code=69))


if __name__ == '__main__':
    main()
