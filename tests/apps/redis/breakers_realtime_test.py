#!/usr/bin/env python3
"""`trinco breakers` on a real Redis: every verb, what `show` tells, and what stays there. Takes the
program and a service."""

import json
import os
import subprocess

from redis_scene import SERVICE, RedisScene
from scene import main, wait_until


class Service:
    def __init__(self, test, url, voter):
        environment = {**os.environ, 'TRINCO_INSTANCE': voter}
        self.process = subprocess.Popen([SERVICE, url, 'pay'], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        test.addCleanup(self.end)

    def ask(self, word):
        self.process.stdin.write(word + '\n')
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip('\n')

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Verbs(RedisScene):
    def test_every_verb_acts_for_all(self):
        self.call_ends(0, '--', 'true')
        self.assertIn('pay is open', self.answer('breakers', 'trip', 'pay', '--for', '1h',
                                                 '--reason', 'gateway restarts'))
        self.assertEqual('open', self.state())
        self.assertEqual(75, self.call('--', 'true')[0])
        self.assertIn('pay is closed', self.answer('breakers', 'reset', 'pay'))
        self.call_ends(0, '--', 'true')
        for verb, state, code in (('force-open', 'forced_open', 75), ('disable', 'disabled', 1),
                                  ('observe', 'observing', 1)):
            self.answer('breakers', verb, 'pay', '--reason', 'a trial')
            shown = self.show()
            self.assertEqual((state, 'a trial'), (shown['in_force'],
                                                  shown['override']['reason'].split(' (')[0]))
            self.assertEqual(code, self.call('--', 'false')[0])
            self.assertIn('pay is', self.answer('breakers', 'resume', 'pay'))
            self.assertIsNone(self.show()['override'])
        self.answer('breakers', 'reset', 'pay')
        self.answer('breakers', 'set', 'pay', 'failure_rate=0.9', 'window=20s')
        shown = self.show()
        self.assertTrue(shown['options_set'])
        self.assertEqual((0.9, 20_000), (shown['options']['failure_rate'],
                                         shown['options']['window_ms']))
        self.assertIn('set', self.answer('breakers', 'ls'))
        self.answer('breakers', 'unset', 'pay')
        self.assertEqual(0.5, self.show()['options']['failure_rate'])
        self.answer('breakers', 'forget', 'pay', '--confirm', 'pay')
        self.assertEqual(0, self.show()['totals']['success'])

    def test_names_prefixes_and_pages(self):
        for name in ('pay', 'pay.eu', 'rates'):
            self.call_ends(0, '--', 'true', name=name)
        self.assertEqual('pay\npay.eu\nrates\n', self.answer('breakers', 'ls', '-o', 'name'))
        self.assertEqual('pay\npay.eu\n', self.answer('breakers', 'ls', 'pay*', '-o', 'name'))
        self.assertIn('did you mean rates?', self.mistake('breakers', 'show', 'ratse'))
        self.assertIn('did you mean rates?', self.mistake('breakers', 'trip', 'ratse'))
        self.assertEqual('', self.answer('breakers', 'ls', '--namespace', 'other', '-o', 'name'))

    def test_watch_tells_changes_of_others(self):
        self.call_ends(0, '--', 'true')
        watch = self.start('breakers', 'watch', '-o', 'json')
        self.assertEqual('begin', json.loads(watch.stdout.readline())['change'])
        self.answer('breakers', 'force-open', 'pay')
        self.assertEqual('forced_open', json.loads(watch.stdout.readline())['in_force'])
        self.answer('breakers', 'resume', 'pay')
        self.assertEqual('closed', json.loads(watch.stdout.readline())['in_force'])

    def test_completion_knows_the_names_that_the_server_has(self):
        self.call_ends(0, '--', 'true', name='rates')
        self.assertIn('rates', self.answer('complete', '--', 'breakers', 'show', 'r'))

    def test_a_key_of_another_kind_is_refused_and_named(self):
        self.server.command('SET', 'trinco:1:default:{pay}', 'x')
        code, _, err = self.run_program('breakers', 'trip', 'pay', '--create')
        self.assertNotEqual(0, code)
        self.assertRegex(err, r'\Atrinco: [^\n]+\n\Z')

    def test_everything_has_a_time_to_live(self):
        self.fail_calls(5)
        self.answer('breakers', 'set', 'pay', 'window=20s', '--for', '2h')
        for key in self.server.command('KEYS', '*'):
            self.assertGreater(self.server.command('PTTL', key), 60_000, key)


class Shown(RedisScene):
    def test_each_instance_with_its_part_its_age_and_its_options(self):
        services = [Service(self, self.server.url, voter) for voter in ('rack-1', 'rack-2')]
        for n, service in enumerate(services):
            for _ in range(n + 1):
                self.assertEqual('admitted', service.ask('success'))
        wait_until(lambda: self.run_program('breakers', 'show', 'pay')[0] == 0 and
                   self.show()['totals']['success'] == 3, 'what the services counted')
        self.assertEqual(0, self.call('--window', '60s', '--minimum-calls', '7', '--', 'true')[0])
        shown = self.show()
        parts = {one['voter']: one for one in shown['instances']}
        self.assertEqual((1, 2), (parts['rack-1']['window']['success'],
                                  parts['rack-2']['window']['success']))
        for one in shown['instances']:
            self.assertLess(one['heard_ms'], 60_000)
        self.assertEqual(['other', 'other'],
                         [parts[rack]['options'] for rack in ('rack-1', 'rack-2')])
        self.assertEqual(['latest'], [one['options'] for one in shown['instances']
                                      if not one['voter'].startswith('rack')])
        page = self.answer('breakers', 'show', 'pay')
        self.assertIn('2 instances are configured with other options than the latest', page)
        self.assertRegex(page, r'options  of \S+:call:\S+, since ')

    def test_what_asking_costs_is_measured(self):
        self.call_ends(0, '--', 'true')
        measured = self.show()['measured']
        told = [what for what in ('round_trip', 'script') if measured[what]]
        self.assertIn('round_trip', told)
        for what in told:
            of = measured[what]
            self.assertGreaterEqual(of['count'], 5)
            self.assertEqual(of['count'], sum(b['number'] for b in of['buckets']))
            self.assertTrue(0 < of['p50_us'] <= of['p99_us'] <= of['most_us'], of)
        if 'script' in told:
            self.assertLess(measured['script']['p50_us'], measured['round_trip']['p50_us'])
        else:  # its clock stands still in scripts
            self.assertNotIn('redis_version:7.0', self.server.command('INFO', 'server'))
        self.assertRegex(self.answer('breakers', 'show', 'pay'),
                         r'round trip  p50 .*\n +up to .* #+ \d+\n')


class Secrets(RedisScene):
    secret = 'p@ss/w:rd %41?#'

    def setUp(self):
        super().setUp()
        self.server.command('ACL', 'SETUSER', 'ann', 'on', '>' + self.secret, '~*', '&*', '+@all')
        self.server.command('ACL', 'SETUSER', 'default', 'off')
        self.environment['TRINCO_BREAKERS'] = self.server.url.replace('//', '//ann@')

    def test_from_a_variable_a_file_and_the_configuration(self):
        file = self.folder / 'password'
        file.write_text(self.secret + '\n')
        config = self.folder / 'trinco.toml'
        config.write_text(f'[breakers]\npassword_file = "{file}"\n')
        for variable, value in (('TRINCO_BREAKERS_PASSWORD', self.secret),
                                ('TRINCO_BREAKERS_PASSWORD_FILE', str(file)),
                                ('TRINCO_CONFIG', str(config))):
            before = dict(self.environment)
            self.environment[variable] = value
            self.call_ends(0, '--', 'true')
            for words in (('breakers', 'show', 'pay'), ('config', 'show'), ('doctor',),
                          ('breakers', 'ls', '-o', 'json')):
                code, out, err = self.run_program(*words)
                self.assertEqual((0, ''), (code, err), words)
                self.assertNotIn(self.secret, out)
            self.environment = before
        self.assertIn('names a user, and no password is given',
                      self.mistake('breakers', 'ls'))

    def test_not_in_a_command_line(self):
        url = self.server.url.replace('//', '//ann:geheim@')
        said = self.mistake('breakers', 'ls', '--breakers', url)
        self.assertIn('seen by every user', said)
        self.assertNotIn('geheim', said)

    def test_wrong_ones_are_denied_and_not_shown(self):
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'geheim'
        said = self.mistake('breakers', 'ls', code=77)
        self.assertIn('trinco doctor', said)
        self.assertNotIn('geheim', said)

    def test_a_file_that_cannot_be_read_is_named(self):
        self.environment['TRINCO_BREAKERS_PASSWORD_FILE'] = str(self.folder / 'none')
        self.assertIn('none', self.mistake('breakers', 'ls', code=69))


if __name__ == '__main__':
    main()
