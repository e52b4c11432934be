#!/usr/bin/env python3
"""The completion scripts, each in its own shell where that is installed."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, sys.path[0] + '/..')
from program import ProgramTest  # noqa: E402

# Calls the script's function as bash does: with the words split at : and =.
ASK_BASH = r'''
source /dev/stdin <<<"$SCRIPT"
COMP_WORDS=("$PROGRAM" "${@:2}")
COMP_CWORD=$(($# - 1))
_trinco
printf '%s\n' "${COMPREPLY[@]}"
'''


class Completion(ProgramTest):
    def setUp(self):
        super().setUp()
        self.environment.update(PROGRAM=self.program, HOME=str(self.folder), TERM='dumb',
                                XDG_CONFIG_HOME=str(self.folder), LC_ALL='C.UTF-8')
        self.environment.pop('XDG_DATA_DIRS', None)

    def need(self, shell):
        if not shutil.which(shell):
            self.skipTest(f'{shell} is not installed')

    def hold(self, name):
        """A lock that is held until the test ends."""
        store = ['--locks', self.environment['TRINCO_LOCKS']]
        holder = subprocess.Popen([self.program, 'lock', name, *store, '--', 'sh', '-c',
                                   'echo held; exec cat'], env=self.environment, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(holder.communicate, timeout=30)
        self.assertEqual('held\n', holder.stdout.readline())

    def bash(self, *words):
        script = self.answer('completion', 'bash')
        done = subprocess.run(['bash', '--norc', '-c', ASK_BASH, 'bash', 'trinco', *words],
                              env=dict(self.environment, SCRIPT=script), capture_output=True,
                              text=True, timeout=30, check=False)
        self.assertEqual('', done.stderr)
        return done.stdout.split()

    def test_bash(self):
        self.need('bash')
        self.assertEqual(['version'], self.bash('ver'))
        self.assertIn('lock', self.bash(''))
        self.assertEqual(['show'], self.bash('config', 's'))
        self.assertEqual(['json', 'table'], self.bash('version', '-o', ''))
        self.assertEqual(['--locks'], self.bash('config', 'show', '--loc'))
        # As --output=j is split.
        self.assertEqual(['json'], self.bash('version', '--output', '=', 'j'))
        self.assertEqual(['json', 'table'], self.bash('version', '--output', '='))
        self.assertEqual([], self.bash('lock', 'job', '--', ''))

    def test_bash_with_a_url_whose_colon_splits_it(self):
        self.need('bash')
        self.assertEqual(['json', 'name'],
                         [word for word in self.bash('config', 'show', '--locks', 'memory', ':',
                                                     'x', '-o', '') if word != 'table'])

    def test_bash_completes_locks_that_are_held(self):
        self.need('bash')
        if not self.has_local:
            self.skipTest('takes a store that processes share')
        self.hold('nightly/backup')
        self.assertEqual(['nightly/backup'], self.bash('locks', 'show', ''))
        self.assertEqual(['nightly/backup'], self.bash('lock', 'nig'))

    def fish(self, line):
        script = self.answer('completion', 'fish')
        done = subprocess.run(['fish', '--no-config', '-c', f'{script}\ncomplete -C "$argv[1]"',
                               line],
                              env=dict(self.environment, PATH=os.path.dirname(self.program) + ':' +
                                       self.environment['PATH']),
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual('', done.stderr)
        return [answer.split('\t')[0] for answer in done.stdout.splitlines()]

    def test_fish(self):
        self.need('fish')
        self.assertEqual(['version'], self.fish('trinco ver'))
        self.assertEqual(['show'], self.fish('trinco config s'))
        self.assertEqual({'json', 'table'}, set(self.fish('trinco version -o ')))
        self.assertEqual(['--locks'], self.fish('trinco config show --loc'))
        self.assertEqual([f'{self.folder}/none.toml'],
                         self.fish(f'trinco config show --config {self.folder}/none'))
        self.assertIn('version', self.fish('trinco lock job -- trinco ver'))

    def zsh(self, line):
        """What an interactive zsh makes of a line and a tab."""
        (self.folder / '_trinco').write_text(self.answer('completion', 'zsh'))
        (self.folder / '.zshrc').write_text(
            f'fpath=({self.folder} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n'
            "PS1='ready> '\nsetopt no_beep no_always_last_prompt\n"
            # The line as it is then, instead of running it.
            'show() { print -r -- "<$BUFFER>"; zle send-break }\nzle -N show\n'
            "bindkey '^M' show\n")
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe('zsh', ['zsh', '-d', '-i'],
                       dict(self.environment, ZDOTDIR=str(self.folder), COLUMNS='200',
                            PATH=os.path.dirname(self.program) + ':' + self.environment['PATH']))
        try:
            self.read_until(terminal, 'ready> ')
            os.write(terminal, line.encode() + b'\t\r')
            return re.search(r'<(.*)>', self.read_until(terminal, r'<.*>\r?\n')).group(1)
        finally:
            os.close(terminal)
            os.waitpid(process, 0)

    def read_until(self, terminal, pattern):
        text = ''
        end = time.monotonic() + 20
        while not re.search(pattern, text):
            left = end - time.monotonic()
            self.assertGreater(left, 0, text)
            if select.select([terminal], [], [], left)[0]:
                text += os.read(terminal, 4096).decode(errors='replace')
        return text

    def test_zsh(self):
        self.need('zsh')
        for line, expected in [('trinco ver', 'trinco version '),
                               ('trinco config s', 'trinco config show '),
                               ('trinco version -o j', 'trinco version -o json '),
                               ('trinco config show --config non',
                                'trinco config show --config none.toml '),
                               ('trinco lock job -- trinco ver',
                                'trinco lock job -- trinco version ')]:
            with self.subTest(line):
                self.assertEqual(expected, self.zsh(line))


if __name__ == '__main__':
    ProgramTest.program = sys.argv.pop(1)
    ProgramTest.has_local = sys.argv.pop(1) == '1'
    unittest.main()
