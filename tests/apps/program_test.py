#!/usr/bin/env python3
"""The program from outside: what it prints where, and how it ends. Takes the program's path
and whether it was built with the store local: (1 or 0)."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from program import ProgramTest, commands_in

OPTIONS_HEADER = pathlib.Path(__file__).parents[2] / 'include/trinco/breaker_options.hpp'
TOPICS = ('options', 'urls', 'config', 'environment', 'exit-codes', 'json')


class Program(ProgramTest):
    def test_bare_program_prints_four_lines_that_work(self):
        lines = self.answer().splitlines()
        self.assertEqual(4, len(lines))
        for line in lines:
            self.assertLessEqual(len(line), 80)
            command = re.split(r'  +', line)[0]
            self.assertEqual('trinco ', command[:7])
            if command == 'trinco demo':  # takes a while, and has tests of its own
                command += ' --help'
            if not self.has_local and 'demo' not in command:
                continue
            with self.subTest(command):
                done = subprocess.run(command.replace('trinco', self.program, 1), shell=True,
                                      env=self.environment, capture_output=True, text=True,
                                      timeout=30, check=False)
                self.assertEqual(0, done.returncode, done.stderr)

    def test_version(self):
        line = self.answer('version')
        self.assertRegex(line, r'\Atrinco \d+\.\d+\.\d+ \(.+\)\n\Z')
        self.assertEqual(line, self.answer('--version'))
        said = json.loads(self.answer('version', '-o', 'json'))
        self.assertEqual(1, said['schema'])
        self.assertIn(said['version'], line)

    def test_help_is_shown_for_all_ways_to_ask_for_it(self):
        overview = self.answer('help')
        self.assertEqual(overview, self.answer('--help'))
        self.assertEqual(overview, self.answer('-h'))
        self.assertEqual(self.answer('help', 'help'), self.answer('help', '--help'))
        self.assertEqual(self.answer('help', 'version'), self.answer('version', '-h'))
        self.assertEqual(self.answer('help', 'config', 'show'), self.answer('config', '--help'))
        self.assertEqual(self.answer('help', 'locks'), self.answer('locks', '--help'))
        self.assertEqual(self.answer('help', 'breaker', 'trip'),
                         self.answer('breakers', 'trip', '--help'))

    def test_help_has_every_command_and_topic_in_a_page_that_fits(self):
        overview = self.answer('help')
        commands = commands_in(overview)
        for expected in (['lock'], ['call'], ['locks', 'break'], ['breakers', 'force-open'],
                         ['config', 'show'], ['demo'], ['version']):
            self.assertIn(expected, commands)
        texts = [overview]
        for command in commands:
            text = self.answer(*command, '--help')
            self.assertTrue(text.startswith('usage: trinco ' + ' '.join(command)), text)
            self.assertRegex(text, r'(?m)^examples$')
            texts.append(text)
        for topic in TOPICS:
            self.assertIn(f'  {topic} ', overview)
            self.assertGreater(len(self.answer('help', topic).splitlines()), 4)
            texts.append(self.answer('help', topic))
        for text in texts:
            self.assertEqual([], [line for line in text.splitlines() if len(line) > 100])

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
        self.assertEqual(self.has_local, bool(re.search(r'(?m)^  local: +yes +yes', text)))
        self.assertIn('trinco::drivers::redis(), etcd(), consul(), local() or memory().', text)

    def test_exit_codes_and_variables_are_explained(self):
        codes = self.answer('help', 'exit-codes')
        for code in ('64', '69', '74', '75', '76', '77', '126', '127', '128+n'):
            self.assertRegex(codes, rf'(?m)^{re.escape(code)} +\w')
        variables = self.answer('help', 'environment')
        for name in ('BREAKERS', 'LOCKS', 'NAMESPACE', 'LOCKS_PREFIX', 'INSTANCE', 'CONFIG'):
            self.assertRegex(variables, rf'(?m)^  TRINCO_{name} +--\w+ ')

    def test_what_was_typed_is_harmless_to_a_terminal(self):
        bad = '\x1b[31m\n'
        for words in ([bad], ['help', bad], ['help', 'urls', bad], ['version', '-o', bad],
                      ['version', bad], ['--' + bad], ['--help=' + bad], ['config', bad],
                      ['config', 'show', '--' + bad], ['lock', 'job', bad], ['locks', bad],
                      ['locks', bad, '--', 'true'], ['completion', bad],
                      ['config', 'show', '--config', bad], ['config', 'show', '--prefix', bad]):
            with self.subTest(words):
                said = self.mistake(*words)
                self.assertNotIn('\x1b', said)
                self.assertIn(r'x1b[31m', said)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for words in ([], ['help'], ['help', 'options'], ['version'], ['version', '-o', 'json'],
                      ['config', 'show'], ['completion', 'bash'], ['lock', '--help']):
            with self.subTest(words), open('/dev/full', 'wb') as full:
                done = self.run_program(*words, stdout=full)
                self.assertEqual(74, done.returncode)
                self.assertRegex(done.stderr, r'\Atrinco: standard output [^\n]+: [^\n]+\n\Z')

    def run_without(self, closed, *words):
        return subprocess.run(['sh', '-c', f'"$0" "$@" {closed}', self.program, *words],
                              env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=30, check=False)

    def test_a_closed_descriptor_is_not_taken_for_a_file_of_ours(self):
        """What is said would be written into the store, or be a message to the guardian."""
        for closed, code in (('>&-', 74), ('2>&-', 0), ('<&- >&- 2>&-', 74)):
            done = self.run_without(closed, 'config', 'show')
            self.assertEqual(code, done.returncode, closed)
        self.assertIn('Bad file descriptor', self.run_without('>&-', 'locks', '-o', 'json').stderr)

    def test_a_command_finds_closed_what_was_closed(self):
        for number, closed in enumerate(('<&-', '>&-', '2>&-')):
            done = self.run_without(closed, 'lock', 'job', '--', 'sh', '-c',
                                    f'if [ -e /proc/$$/fd/{number} ]; then exit 1; fi; exit 7')
            self.assertEqual(7, done.returncode, closed)

    def test_a_file_that_may_not_grow_is_an_error(self):
        def limited(out, err, *words):
            line = f'ulimit -f 0; exec "$@" > {out} 2> {err}'
            return subprocess.run(['sh', '-c', line, 'sh', self.program, *words], check=False,
                                  env=self.environment, cwd=self.folder, timeout=30,
                                  capture_output=True, text=True)
        done = limited('out', '/dev/stderr', 'help')
        self.assertEqual(74, done.returncode)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*File too large\n\Z')
        self.assertEqual(64, limited('out', 'err', 'frobnicate').returncode)
        # The command's own signal is what it was.
        done = self.run_program('lock', 'job', '--', 'sh', '-c', 'kill -XFSZ $$; exit 3')
        self.assertEqual(128 + signal.SIGXFSZ, done.returncode)

    def test_a_reader_that_has_gone_is_no_message(self):
        reader = subprocess.Popen(['true'], stdin=subprocess.PIPE)
        reader.wait(timeout=30)
        with reader.stdin as gone:
            done = self.run_program('help', stdout=gone)
        self.assertEqual((74, ''), (done.returncode, done.stderr))


if __name__ == '__main__':
    ProgramTest.program = sys.argv.pop(1)
    ProgramTest.has_local = sys.argv.pop(1) == '1'
    unittest.main()
