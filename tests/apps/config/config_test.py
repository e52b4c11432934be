#!/usr/bin/env python3
"""`trinco config show` and the file trinco.toml, from outside."""

import json
import os
import pathlib
import pwd
import re
import sys
import unittest

sys.path.insert(0, sys.path[0] + '/..')
from program import ProgramTest  # noqa: E402


class Config(ProgramTest):
    def setUp(self):
        super().setUp()
        for name in ('TRINCO_LOCKS', 'TRINCO_BREAKERS', 'TRINCO_BREAKERS_MIRROR'):
            del self.environment[name]

    def shown(self, *words):
        """key -> (value, source)"""
        said = json.loads(self.answer('config', 'show', '-o', 'json', *words))
        self.assertEqual(1, said['schema'])
        return {one['key']: (one['value'], one['source']) for one in said['settings']}

    def use(self, text):
        self.environment['TRINCO_CONFIG'] = self.write('own.toml', text)
        return self.environment['TRINCO_CONFIG']

    def test_each_value_has_its_source(self):
        file = self.use('[locks]\nstore = "memory:file"\nprefix = "file/"\n')
        self.environment.update(TRINCO_LOCKS='memory:env', TRINCO_NAMESPACE='')
        shown = self.shown('--breakers', 'memory:flag')
        self.assertEqual({'breakers.store': ('memory:flag', '--breakers'),
                          'breakers.namespace': ('default', 'default'),
                          'breakers.mirror': ('local:', 'default'),
                          'breakers.password': ('', 'default'),
                          'breakers.password_file': ('', 'default'),
                          'locks.store': ('memory:env', 'TRINCO_LOCKS'),
                          'locks.prefix': ('file/', f'{file}:3'),
                          'locks.ttl': ('15s', 'default'),
                          'instance': ('', 'default')}, shown)

    def test_as_a_table_and_as_names(self):
        lines = self.answer('config', 'show').splitlines()
        self.assertEqual(['KEY', 'VALUE', 'SOURCE'], lines[0].split())
        stores = [line for line in lines if line.startswith('locks.store ')]
        self.assertRegex(stores[0], r'^locks.store +local:( \(/\S+/local\.db\))? +default$')
        self.assertIn(['locks.prefix', '-', 'default'], [line.split() for line in lines])
        self.assertEqual([line.split()[0] for line in lines[1:]],
                         self.answer('config', '-o', 'name').splitlines())

    def test_the_file_behind_the_default(self):
        if not self.has_local:
            self.skipTest('this build has no such store')
        said = json.loads(self.answer('config', 'show', '-o', 'json', '--breakers', 'local:/x.db'))
        files = {one['key']: one.get('file') for one in said['settings']}
        home = pathlib.Path(pwd.getpwuid(os.geteuid()).pw_dir)
        folder = (pathlib.Path('/var/lib/trinco') if os.geteuid() == 0
                  else home / '.local/state/trinco')
        self.assertEqual(str(folder / 'local.db'), files['locks.store'])
        self.assertIsNone(files['breakers.store'])
        self.assertIsNone(files['locks.prefix'])

    def test_secrets_are_hidden(self):
        self.environment['TRINCO_LOCKS'] = 'redis://me:hunter2@host/0?token=hunter2'
        said = self.answer('config', 'show')
        self.assertIn('redis://***@host/0?token=***', said)
        self.assertNotIn('hunter2', said)

    def test_the_file_of_the_help_is_one(self):
        example = re.findall(r'(?m)^  ( *#.*|\[.*|\w+ = .*|)$', self.answer('help', 'config'))
        self.use('\n'.join(example))
        shown = self.shown()
        self.assertEqual('rack-7', shown['instance'][0])
        self.assertEqual('50%', shown['breakers.policies.payments.failure_rate'][0])
        self.assertEqual('2s', shown['breakers.policies.payments.timeout'][0])

    def test_mistakes_in_the_file_are_named_with_their_line(self):
        for text, line, expected in [
                ('[locks]\nstore = local:\n', 2, 'this is not TOML: '),
                ('[locks]\nstroe = "local:"\n', 2, 'did you mean locks.store?'),
                ('[locks]\nstore = 7\n', 2, 'write it in quotes'),
                ('instance = "a b"\n', 1, 'the instance '),
                ('\x1b[31m\n', 1, 'this is not TOML: ')]:
            with self.subTest(text):
                file = self.use(text)
                said = self.mistake('config', 'show')
                self.assertTrue(said.startswith(f'{file}:{line}: '), said)
                self.assertIn(expected, said)
                self.assertNotIn('\x1b', said)
                self.assertEqual(said, self.mistake('lock', 'job', '--', 'true'))

    def test_a_policy_that_call_refuses_is_named_and_stops_no_lock(self):
        if not self.has_local:
            self.skipTest('this build has no store for a lock')
        store = f'local:{self.folder}/test.db'
        for text, line, expected in [
                ('failure_rate = 50\n', 2, 'failure_rate is "50"; allowed is more than 0'),
                ('timeout = "2s"\nopen_for = 60\n', 3, '"60" has no unit: 60s are seconds'),
                ('\nopen_fro = "1s"\n', 3, 'did you mean open_for?'),
                ('open_for = "20min"\nopen_max = "10min"\n', 3, 'open_max is '),
                ('failure_exit = "300"\n', 2, '0 to 255'),
                ('fallback = ["cat", "x"]\n', 2, 'fallback is a list')]:
            with self.subTest(text):
                file = self.use('[breakers.policies.payments]\n' + text)
                said = self.mistake('config', 'show')
                self.assertTrue(said.startswith(f'{file}:{line}: '), said)
                self.assertIn(expected, said)
                self.assertEqual(said, self.mistake('call', 'payments', '--breakers', store,
                                                    '--', 'true'))
                self.answer('call', 'other', '--breakers', store, '--', 'true')
                self.answer('lock', 'job', '--locks', store, '--', 'true')

    def test_a_named_file_must_exist(self):
        self.environment['TRINCO_CONFIG'] = '/none/such.toml'
        self.assertEqual('the configuration "/none/such.toml" of TRINCO_CONFIG does not exist',
                         self.mistake('config', 'show'))
        self.assertEqual('the configuration "/none/other.toml" of --config does not exist',
                         self.mistake('config', 'show', '--config', '/none/other.toml'))

    def test_a_file_that_others_own_is_no_silent_default(self):
        os.chmod(self.use('[locks]\nstore = "memory:file"\n'), 0)
        self.folder.chmod(0o755)
        other = {'user': 65534, 'group': 65534, 'extra_groups': []} if os.geteuid() == 0 else {}
        try:
            done = self.run_program('config', 'show', cwd='/', **other)
        except PermissionError:
            self.skipTest('only this user may run the program')
        self.assertEqual((64, ''), (done.returncode, done.stdout))
        self.assertIn('cannot be read: Permission denied', done.stderr)

    def test_a_file_of_the_working_directory_does_not_count(self):
        self.write('trinco.toml', 'frobnicate = 1\n')
        done = self.run_program('config', 'show', cwd=self.folder)
        self.assertEqual((0, ''), (done.returncode, done.stderr))


if __name__ == '__main__':
    ProgramTest.program = sys.argv.pop(1)
    ProgramTest.has_local = sys.argv.pop(1) == '1'
    unittest.main()
