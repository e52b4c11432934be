#!/usr/bin/env python3
"""The program from outside: what it prints where, and how it ends. Takes the program's path
and whether it was built with the store local: (1 or 0)."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

OPTIONS_HEADER = pathlib.Path(__file__).parents[2] / 'include/trinco/breaker_options.hpp'


def run(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=20,
                          check=False)
    return done.returncode, done.stdout, done.stderr


class Program(unittest.TestCase):
    def answer(self, *words):
        """Standard output of a call that must succeed without a message."""
        code, out, err = run(*words)
        self.assertEqual((0, ''), (code, err))
        return out

    def mistake(self, *words):
        """The one line that answers a mistake."""
        code, out, err = run(*words)
        self.assertEqual((64, ''), (code, out))
        self.assertRegex(err, r'\Atrinco: [^\n]+\n\Z')
        return err

    def test_bare_program_prints_four_lines_that_work(self):
        lines = self.answer().splitlines()
        self.assertEqual(4, len(lines))
        for line in lines:
            command = re.split(r'  +', line)[0].split()
            self.assertEqual('trinco', command[0])
            self.assertTrue(self.answer(*command[1:]))

    def test_version(self):
        line = self.answer('version')
        self.assertRegex(line, r'\Atrinco \d+\.\d+\.\d+ \(.+\)\n\Z')
        self.assertEqual(line, self.answer('--version'))
        said = json.loads(self.answer('version', '-o', 'json'))
        self.assertEqual(1, said['schema'])
        self.assertIn(said['version'], line)

    def test_help_lists_every_topic_and_each_has_a_text(self):
        overview = self.answer('help')
        self.assertEqual(overview, self.answer('--help'))
        for words in (['version', '--help'], ['help', '--help'], ['help', '-h'],
                      ['help', 'help'], ['help', 'version'], ['-h']):
            self.assertEqual(overview, self.answer(*words))
        for topic in ('options', 'urls', 'exit-codes'):
            self.assertIn(f'  {topic} ', overview)
            self.assertGreater(len(self.answer('help', topic).splitlines()), 4)

    def test_every_option_of_the_header_is_in_the_table_in_its_order(self):
        header = OPTIONS_HEADER.read_text().split('struct option_error')[0]
        members = re.findall(r'^    (?!using)(?:[\w:]+|std::optional<\w+>) (\w+)'
                             r'(?: = [^;]+|\{[^}]*\})?;', header, re.M)
        self.assertGreater(len(members), 20)
        table = self.answer('help', 'options')
        self.assertEqual(members, [line.split()[0] for line in table.splitlines()[1:]
                                   if re.match(r'[a-z_]+  ', line)])
        self.assertEqual(1, table.count('failure_threshold'))
        self.assertRegex(table, r'(?m)^failure_count +failure_threshold +number +off +0 \(off\)')
        self.assertRegex(table, r'(?m)^open_for +cooldown_time\b.* duration +10 s +10 ms to 24 h$')
        notes = re.findall(r'(?m)^    (?:why:  |watch:) \w+', table)
        self.assertEqual(2 * len(members), len(notes))

    def test_urls_name_what_is_there_and_what_is_not(self):
        text = self.answer('help', 'urls')
        self.assertRegex(text, r'(?m)^  memory: +yes +yes')
        self.assertEqual(HAS_LOCAL, bool(re.search(r'(?m)^  local: +yes +yes', text)))
        self.assertIn('trinco::drivers::memory().', text)
        self.assertRegex(text, r'(?m)^No store of this version is shared by several machines\.$')

    def test_mistakes_say_what_was_meant(self):
        self.assertIn("did you mean 'trinco version'?", self.mistake('vesrion'))
        self.assertIn("'trinco help' and 'trinco version'", self.mistake('frobnicate', 'x'))
        self.assertIn("did you mean 'trinco help options'?", self.mistake('help', 'option'))
        self.assertIn("'trinco help' lists", self.mistake('help', 'nothing'))
        self.assertIn('table or json', self.mistake('version', '-o', 'xml'))
        self.assertIn('--bad', self.mistake('--bad'))
        self.assertIn('extra', self.mistake('help', 'urls', 'extra'))
        self.assertIn('"version" was not expected', self.mistake('version', 'version'))
        self.assertIn('"help" was not expected', self.mistake('version', 'help'))
        self.assertIn('table or json', self.mistake('version', '-o'))
        self.assertIn('table or json', self.mistake('version', '-o', 'json', '-o', 'json'))
        self.mistake('--help=what')
        self.mistake('')
        self.mistake('x' * 5000)

    def test_what_was_typed_is_harmless_to_a_terminal(self):
        for words in (['\x1b[31m\n'], ['help', '\x1b[31m\n'], ['help', 'urls', '\x1b[31m\n'],
                      ['version', '-o', '\x1b[31m\n'], ['version', '\x1b[31m\n'],
                      ['--\x1b[31m\n'], ['--help=\x1b[31m\n']):
            with self.subTest(words):
                said = self.mistake(*words)
                self.assertNotIn('\x1b', said)
                self.assertIn(r'x1b[31m', said)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for words in ([], ['help'], ['help', 'options'], ['version'], ['version', '-o', 'json']):
            with self.subTest(words), open('/dev/full', 'wb') as full:
                done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=20, check=False)
                self.assertEqual(74, done.returncode)
                self.assertRegex(done.stderr, r'\Atrinco: standard output [^\n]+: [^\n]+\n\Z')


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    HAS_LOCAL = sys.argv.pop(1) == '1'
    unittest.main()
