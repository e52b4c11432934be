#!/usr/bin/env python3
"""What people type wrong, at commands of locks and of breakers: one sentence each, code 64, and
nothing is made or changed. Takes the program's path."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'lock'))
import scene
from scene import PATIENCE, PROGRAM, Scene

import subprocess


class Mistakes(Scene):
    def mistake(self, *words):
        """The sentence that answers it."""
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, check=False,
                              env={'TRINCO_LOCKS': self.store, 'TRINCO_BREAKERS': self.store})
        with self.subTest(words):
            self.assertEqual((64, ''), (done.returncode, done.stdout))
            self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
            self.assertNotIn('\x1b', done.stderr)
        return done.stderr

    def tearDown(self):
        self.assertEqual([], list(self.folder.glob('x.db*')), 'a mistake has made something')

    def says(self, sentence, *parts):
        for part in parts:
            with self.subTest(sentence):
                self.assertIn(part, sentence)

    def test_unknown_options_name_the_nearest(self):
        run = ('--', 'true')
        for words, meant in ((('lock', 'job', '--wiat', '3s', *run), '--wait'),
                             (('lock', 'job', '--ttl=3s', '--shred', *run), '--shared'),
                             (('call', 'b', '--timout', '3s', *run), '--timeout'),
                             (('locks', 'ls', '--oputput', 'json'), '--output'),
                             (('locks', 'show', 'job', '--lock', self.store), '--locks'),
                             (('locks', 'break', 'job', '--froce'), '--force'),
                             (('locks', 'watch', '--evry', '1s'), '--every'),
                             (('breakers', 'trip', 'b', '--reson', 'x'), '--reason'),
                             (('setup', '--machin'), '--machine')):
            self.says(self.mistake(*words), f'did you mean {meant}?')
        self.says(self.mistake('lock', 'job', '--utterly-strange', *run),
                  '--utterly-strange', '--help')
        self.says(self.mistake('locks', 'brake', 'job'), "did you mean 'trinco locks break'?")
        self.says(self.mistake('locks', 'job', *run), "'trinco lock job -- true'")

    def test_bad_names(self):
        for name in ('a b', '', 'x/', 'a//b', '../x', 'x' * 201, 'ä', 'a\nb', '\x1b[31m'):
            for words in (('lock', name, '--', 'true'), ('locks', 'show', name),
                          ('locks', 'break', name, '--confirm', name)):
                self.says(self.mistake(*words), 'the name of a lock is', '1 to 200')
        for name in ('a b*', '..*', 'a//', '//*'):
            self.mistake('locks', 'ls', name)
            self.mistake('locks', 'watch', name)
        for name in ('a b', '', 'a/b', 'x' * 129, 'ä', 'a\nb'):
            for words in (('call', name, '--', 'true'), ('breakers', 'show', name),
                          ('breakers', 'trip', name)):
                self.says(self.mistake(*words), 'breaker')

    def test_durations_need_a_unit(self):
        for words in (('lock', 'job', '--wait', '30', '--', 'true'),
                      ('lock', 'job', '--ttl', '30', '--', 'true'),
                      ('lock', 'job', '--grace', '30', '--', 'true'),
                      ('call', 'b', '--timeout', '30', '--', 'true'),
                      ('locks', 'watch', '--every', '30'),
                      ('breakers', 'trip', 'b', '--for', '30')):
            self.says(self.mistake(*words), '"30" has no unit: 30s', '30ms')
        self.says(self.mistake('lock', 'job', '--ttl', '3 weeks', '--', 'true'), 'weeks', 'min')
        self.says(self.mistake('lock', 'job', '--ttl', 'soon', '--', 'true'), 'soon')

    def test_times_out_of_range(self):
        for words in (('lock', 'job', '--ttl', '-5s', '--', 'true'),
                      ('lock', 'job', '--ttl=-5s', '--', 'true'),
                      ('lock', 'job', '--wait', '-1ms', '--', 'true'),
                      ('call', 'b', '--timeout', '-2s', '--', 'true')):
            self.says(self.mistake(*words), 'is negative; it is ')
        for words in (('lock', 'job', '--ttl', '0', '--', 'true'),
                      ('lock', 'job', '--ttl', '1ms', '--', 'true'),
                      ('lock', 'job', '--ttl', '2d', '--', 'true'),
                      ('lock', 'job', '--ttl', '9999999999999999d', '--', 'true'),
                      ('locks', 'watch', '--every', '0'),
                      ('lock', 'job', '-n', '0', '--', 'true'),
                      ('lock', 'job', '-n', '-1', '--', 'true'),
                      ('lock', 'job', '-n', 'many', '--', 'true')):
            self.mistake(*words)

    def test_other_words(self):
        self.says(self.mistake('locks', 'ls', '-o', 'xml'), 'table', 'json', 'name')
        self.says(self.mistake('locks', 'show'), 'NAME')
        self.says(self.mistake('locks', 'show', 'a', 'b'), '"b"')
        self.says(self.mistake('lock', 'job'), '-- COMMAND')
        self.says(self.mistake('setup'), "'trinco setup --machine'")
        for url in ('', 'local', 'local:relative.db', 'local:/ends/', 'nosuch:x', 'local:\x1b'):
            self.mistake('locks', 'ls', '--locks', url)


if __name__ == '__main__':
    scene.main()
