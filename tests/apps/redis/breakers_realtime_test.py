#!/usr/bin/env python3
"""`trinco breakers` on a real Redis: every verb, what `show` tells, and what stays there. Takes the
program and a service."""

import json
import subprocess

from redis_scene import RedisScene, Service
from scene import PROGRAM, main, wait_until


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
        self.assertEqual('forced_open',
                         json.loads(watch.stdout.readline())['breaker']['in_force'])
        self.answer('breakers', 'resume', 'pay')
        self.assertEqual('closed', json.loads(watch.stdout.readline())['breaker']['in_force'])

    def test_completion_knows_the_names_that_the_server_has(self):
        self.call_ends(0, '--', 'true', name='rates')
        self.assertIn('rates', self.answer('complete', '--', 'breakers', 'show', 'r'))

    def test_everything_has_a_time_to_live(self):
        self.fail_calls(5)
        self.answer('breakers', 'set', 'pay', 'window=20s', '--for', '2h')
        for key in self.server.command('KEYS', '*'):
            self.assertGreater(self.server.command('PTTL', key), 60_000, key)


class Failing(RedisScene):
    """What is said names the action, the server, the reason and the next step."""

    VERBS = {'ls': 'list breakers', 'show': 'show the breaker pay', 'watch': 'watch breakers',
             'trip': 'trip the breaker pay', 'reset': 'reset the breaker pay',
             'force-open': 'force open the breaker pay', 'disable': 'disable the breaker pay',
             'observe': 'observe the breaker pay', 'resume': 'resume the breaker pay',
             'set': 'set options of the breaker pay', 'unset': 'unset the options of the breaker',
             'forget': 'forget the breaker pay'}
    MORE = {'set': ['window=20s'], 'forget': ['--confirm', 'pay']}

    def expect(self, verb, reason, *words, code=69, doctor=None):
        name = ['pay'] if verb != 'watch' else []
        if verb == 'ls':
            name = []
        said = self.mistake('breakers', verb, *name, *self.MORE.get(verb, []), *words, code=code)
        self.assertIn(f'trinco: could not {self.VERBS[verb]}', said)
        self.assertIn(reason, said)
        self.assertIn(doctor or f"'trinco doctor --breakers {self.server.url}' says more", said)
        return said

    def test_no_server(self):
        self.server.kill()
        # At the same time, since each waits.
        asked = {verb: self.start('breakers', verb, *([] if verb in ('ls', 'watch') else ['pay']),
                                  *self.MORE.get(verb, [])) for verb in self.VERBS}
        for verb, process in asked.items():
            out, err = process.communicate()
            self.assertEqual((69, ''), (process.returncode, out), err)
            self.assertIn(f'trinco: could not {self.VERBS[verb]}', err)
            self.assertIn(f'at {self.server.url}: cannot connect to 127.0.0.1:{self.server.port}: '
                          'connection refused', err)
            self.assertIn(f"'trinco doctor --breakers {self.server.url}' says more", err)
            self.assertRegex(err, r'\Atrinco: [^\n]+\n\Z')

    def test_a_replica_and_no_memory_left(self):
        self.call_ends(0, '--', 'true')
        self.server.command('CONFIG', 'SET', 'maxmemory', '1')
        self.expect('disable', 'OOM: the server has reached its maxmemory')
        self.server.command('CONFIG', 'SET', 'maxmemory', '0')
        replica = self.begin_server('replica', replicaof=('127.0.0.1', self.server.port))
        wait_until(lambda: replica.command('ROLE')[3] == 'connected', 'the replica')
        said = self.expect('trip', 'READONLY: the server is a replica, not a primary',
                           '--breakers', replica.url, '--namespace', 'default',
                           doctor=f"'trinco doctor --breakers {replica.url}' says more")
        self.assertNotIn(self.server.url, said)

    def test_the_command_that_says_more_can_be_pasted_and_holds_no_password(self):
        self.server.command('ACL', 'SETUSER', 'ann', 'on', '>geheim', '~*', '&*', '+@all', '-hset')
        self.environment['TRINCO_BREAKERS_PASSWORD'] = 'falsch'
        url = self.server.url.replace('//', '//ann@')
        for words, line in ((['--breakers', url], f'trinco doctor --breakers {url}'),
                            (['--breakers', url + '/0', '--namespace', 'shop'],
                             f'trinco doctor --breakers {url}/0 --namespace shop'),
                            ([], 'trinco doctor')):
            self.environment['TRINCO_BREAKERS'] = url.replace('ann@', 'ann:falsch@')
            said = self.expect('show', 'WRONGPASS', *words, code=77, doctor=f"'{line}' says more")
            self.assertNotIn('falsch', said)
            shell = subprocess.run(['sh', '-c', f'exec "$0" {line.split(maxsplit=1)[1]}', PROGRAM],
                                   env=self.environment, capture_output=True, text=True,
                                   check=False)
            self.assertEqual(77, shell.returncode, shell)
            self.assertIn('WRONGPASS', shell.stdout)

    def test_output_has_one_shape_whatever_the_verb(self):
        self.call_ends(0, '--', 'true')
        shapes = {}
        for verb in self.VERBS:
            if verb in ('ls', 'watch'):
                continue
            said = json.loads(self.answer('breakers', verb, 'pay', *self.MORE.get(verb, []),
                                          '-o', 'json'))
            self.assertEqual(['schema', 'store', 'namespace', 'breaker'], list(said))
            shapes[verb] = said['breaker']
        shapes['ls'], = json.loads(self.answer('breakers', 'ls', '-o', 'json'))['breakers']
        watch = self.start('breakers', 'watch', '-o', 'json')
        shapes['watch'] = json.loads(watch.stdout.readline())['breaker']
        least = set(shapes['trip'])
        for verb, breaker in shapes.items():
            self.assertLessEqual(least, set(breaker), verb)
            self.assertNotEqual('', breaker['reason'], verb)


class Gone(RedisScene):
    def watch(self, *words):
        process = self.start('breakers', 'watch', *words)
        return process, iter(process.stdout.readline, '')

    def test_watch_tells_that_the_server_is_gone_and_that_it_is_back(self):
        self.call_ends(0, '--', 'true')
        (_, table), (_, lines), (names, only) = (self.watch(), self.watch('-o', 'json'),
                                                 self.watch('-o', 'name'))
        self.assertIn('pay is closed', next(table))
        self.assertEqual('begin', json.loads(next(lines))['change'])
        self.assertEqual('pay\n', next(only))
        self.server.kill()
        self.assertRegex(next(table),
                         rf'Z  the store {self.server.url} does not answer: [^\n]+: connection '
                         r'refused; its last answer was at \d{4}-\d\d-\d\dT[0-9:.]+Z\n')
        lost = json.loads(next(lines))
        self.assertEqual((2, self.server.url, 'default', 'store_lost', None),
                         (lost['schema'], lost['store'], lost['namespace'], lost['change'],
                          lost['breaker']))
        self.assertRegex(names.stderr.readline(), r'\Atrinco: the store [^\n]+does not answer')
        self.assertIn('connection refused', lost['reason'])
        self.assertLess(lost['since'], lost['at'])
        self.server.start()
        self.assertRegex(next(table), r'answers again, after .+; it was restarted or replaced')
        back = json.loads(next(lines))
        self.assertEqual(('store_back', lost['since'], True),
                         (back['change'], back['since'], back['restarted']))
        self.assertGreater(back['away_ms'], 0)
        # What it knows now is told, though it is less than before.
        self.call_ends(0, '--', 'true')
        self.assertIn('pay is closed', next(table))
        self.assertEqual('closed', json.loads(next(lines))['breaker']['in_force'])
        self.assertEqual('pay\n', next(only))
        names.terminate()
        _, err = names.communicate()
        self.assertRegex(err, r'\Atrinco: the store [^\n]+answers again[^\n]+\n\Z')

    def test_what_was_missed_while_the_server_stood_still_is_told(self):
        self.call_ends(0, '--', 'true')
        _, lines = self.watch('-o', 'json')
        self.assertEqual('begin', json.loads(next(lines))['change'])
        self.server.pause()
        lost = json.loads(next(lines))
        self.assertEqual('store_lost', lost['change'])
        # By what was asked of it last: a question, or to be let in.
        self.assertRegex(lost['reason'], r'no answer in time|did not let us in within')
        tripping = self.start('breakers', 'trip', 'pay')
        self.server.go_on()
        told = [json.loads(next(lines)) for _ in range(2)]
        self.assertEqual({'store_back', 'state'}, {one['change'] for one in told})
        self.assertFalse([one for one in told if one['change'] == 'store_back'][0]['restarted'])
        self.assertEqual(0, tripping.wait())

    def test_a_signal_ends_it_at_once_also_while_the_server_is_gone(self):
        self.call_ends(0, '--', 'true')
        process, lines = self.watch('-o', 'json')
        self.assertEqual('begin', json.loads(next(lines))['change'])
        self.server.pause()
        self.assertEqual('store_lost', json.loads(next(lines))['change'])
        process.terminate()
        self.assertEqual(0, process.wait())


class OtherKeys(RedisScene):
    """What is no breaker under the keys of one, or of the index."""

    def setUp(self):
        super().setUp()
        self.call_ends(0, '--', 'true')
        self.call_ends(0, '--', 'true', name='rates')

    def replace(self, key):
        self.server.command('DEL', key)
        self.server.command('SET', key, 'x')

    def test_a_breaker_that_cannot_be_read_is_not_shown_as_closed(self):
        for part in ('', ':voters', ':instances'):
            self.replace('trinco:1:default:{pay}' + part)
            rows = json.loads(self.answer('breakers', 'ls', '-o', 'json'))['breakers']
            self.assertEqual([('pay', True), ('rates', False)],
                             [(row['name'], row['error'] is not None) for row in rows])
            self.assertNotIn('state', rows[0])
            self.assertRegex(self.answer('breakers'), r'(?m)^pay +unreadable ')
            said = self.mistake('breakers', 'show', 'pay', code=69)
            self.assertIn('something else than a breaker lives under one of its keys', said)
            self.assertIn(f"'trinco breakers forget pay --confirm pay --force --breakers "
                          f"{self.server.url}' removes it", said)
            self.assertIn('something else', self.mistake('breakers', 'trip', 'pay', code=69))
            if part != ':instances':  # which an operator's hand does not touch
                self.assertIn('WRONGTYPE',
                              self.mistake('breakers', 'trip', 'pay', '--create', code=69))
            # Not without being told to.
            self.mistake('breakers', 'forget', 'pay', '--confirm', 'pay', code=69)
            self.assertEqual('x', self.server.command('GET', 'trinco:1:default:{pay}' + part))
            code, out, err = self.run_program('breakers', 'forget', 'pay', '--confirm', 'pay',
                                              '--force')
            self.assertEqual((0, f'trinco: removed the key trinco:1:default:{{pay}}{part}, which '
                                 "was no breaker's\n"), (code, err))
            self.assertIn('pay is closed', out)
            self.assertEqual('closed', self.state())

    def test_force_alone_removes_no_breaker(self):
        self.assertIn('say --confirm pay', self.mistake('breakers', 'forget', 'pay', '--force'))
        self.assertIn('has no breaker "ratess"', self.mistake(
            'breakers', 'forget', 'ratess', '--confirm', 'ratess', '--force'))
        self.assertIn('pay is closed', self.answer('breakers', 'forget', 'pay', '--confirm', 'pay',
                                                   '--force'))

    def test_an_index_of_another_kind_hides_names_and_stops_nobody(self):
        self.replace('trinco:1:default:index')
        for words in (['ls'], ['show', 'pay'], ['reset', 'pay']):
            said = self.mistake('breakers', *words, code=69)
            self.assertIn('something else than the list of names lives under its key', said)
            self.assertIn(f"'trinco doctor --breakers {self.server.url}' names the key", said)
        self.assertIn('pay is forced open',
                      self.answer('breakers', 'force-open', 'pay', '--create'))
        self.assertEqual(75, self.call('--', 'true')[0])


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
