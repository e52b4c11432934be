"""`trinco doctor` of local: files, as people call it. Takes the program."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from program import ProgramTest  # noqa: E402


class Doctor(ProgramTest):
    def examine(self, *words, code=0):
        """{check: finding} of the one store."""
        done = self.run_program('doctor', '-o', 'json', *words)
        self.assertEqual((code, ''), (done.returncode, done.stderr), done.stdout)
        said = json.loads(done.stdout)
        self.assertEqual(1, said['schema'])
        return {one['check']: one for store in said['stores'] for one in store['checks']}

    def test_of_a_store_that_is_not_there_yet_makes_none(self):
        checks = self.examine()
        self.assertIn('not there yet', checks['file']['sentence'])
        self.assertEqual(['none.toml'], os.listdir(self.folder))

    def test_of_a_store_in_use(self):
        self.answer('lock', 'x', '--', 'true')
        checks = self.examine()
        self.assertEqual({'file', 'rights', 'file-system', 'space', 'answer', 'use'}, set(checks))
        self.assertEqual('no lock is held', checks['use']['sentence'])
        self.assertEqual({'ok'}, {one['level'] for one in checks.values()})
        self.assertEqual(20, checks['answer']['figures']['count'])
        text = self.answer('doctor')
        self.assertIn('breakers and locks: local:', text)
        self.assertIn('  ok    answer ', text)
        self.assertEqual('', self.answer('doctor', '-o', 'name'))

    def test_of_two_stores(self):
        text = self.answer('doctor', '--locks', f'local:{self.folder}/other.db')
        self.assertIn('breakers: local:', text)
        self.assertIn('\nlocks: local:', text)

    def test_warnings_count_when_they_are_asked_for(self):
        self.answer('lock', 'x', '--', 'true')
        os.chmod(self.folder / 'test.db', 0o666)
        self.assertEqual('warn', self.examine()['rights']['level'])
        self.examine('--strict', code=1)
        self.assertEqual('rights warn\n', self.answer('doctor', '-o', 'name'))

    def test_a_file_that_is_something_else_is_bad(self):
        (self.folder / 'test.db').write_text('x' * 10_000)
        os.chmod(self.folder / 'test.db', 0o600)
        checks = self.examine(code=69)
        self.assertEqual('bad', checks['answer']['level'])
        self.assertIn('not a database', checks['answer']['sentence'])

    def test_a_folder_that_is_not_there_is_bad(self):
        checks = self.examine('--breakers', f'local:{self.folder}/none/x.db', '--locks',
                              f'local:{self.folder}/none/x.db', code=69)
        self.assertEqual('bad', checks['file']['level'])

    def test_of_a_url_that_is_none(self):
        self.assertEqual('bad', self.examine('--locks', 'lokal:', code=64)['url']['level'])
        self.assertEqual('bad', self.examine('--locks', 'memory:', code=64)['url']['level'])


if __name__ == '__main__':
    ProgramTest.program = sys.argv.pop(1)
    unittest.main()
