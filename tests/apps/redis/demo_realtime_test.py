#!/usr/bin/env python3
"""`trinco demo --breakers`: its second act on a real Redis, from which nothing is left. Takes the
program and a service."""

import json
import subprocess

from redis_scene import RedisScene
from scene import PROGRAM, main, wait_until
from servers import free_port

import subprocess

WHOLE_TIME = 60


class Demo(RedisScene):
    settings = {'requirepass': 'geheim'}

    def setUp(self):
        super().setUp()
        self.server.password = 'geheim'
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'

    def test_five_processes_stop_and_go_on_together(self):
        done = subprocess.run([PROGRAM, 'demo', '--breakers', self.server.url, '--json'],
                              capture_output=True, text=True, env=self.environment,
                              stdin=subprocess.DEVNULL, timeout=WHOLE_TIME, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        result = lines[-1]
        self.assertEqual(('result', True), (result['event'], result['nothing_left']), result)
        self.assertEqual((0, ''), (done.returncode, done.stderr), result)
        self.assertIsNone(result['tickets'])
        self.assertTrue(all(result['breaker']['claims'].values()), result)
        self.assertEqual(5, len(result['breaker']['with_breaker']['services']))
        self.assertNotIn('geheim', done.stdout)
        self.assertEqual([], self.server.command('KEYS', '*'))

    def test_what_cannot_be_played_is_said(self):
        said = self.mistake('demo', '--breakers', f'redis://127.0.0.1:{free_port()}', code=69)
        self.assertIn('trinco doctor', said)
        self.mistake('demo', '--breakers', self.server.url, '--only', 'tickets')
        self.mistake('demo', '--breakers', f'local:{self.file}')
        replica = self.begin_server('replica', replicaof=('127.0.0.1', self.server.port),
                                    masterauth='geheim', requirepass='geheim')
        replica.password = 'geheim'
        wait_until(lambda: replica.command('ROLE')[3] == 'connected', 'the replica')
        said = self.mistake('demo', '--breakers', replica.url, code=69)
        self.assertIn('could not play the demonstration', said)
        self.assertIn('READONLY: the server is a replica', said)
        self.assertIn(f"'trinco doctor --breakers {replica.url}' says more", said)
        self.server.command('CONFIG', 'SET', 'maxmemory', '1')
        self.assertIn('maxmemory', self.mistake('demo', '--breakers', self.server.url, code=69))
        self.server.command('CONFIG', 'SET', 'maxmemory', '0')
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'x'
        self.mistake('demo', '--breakers', self.server.url, code=77)


if __name__ == '__main__':
    main()
