#!/usr/bin/env python3
"""Mistakes on the command line, each answered with one line that says what was meant."""

import sys
import unittest

sys.path.insert(0, sys.path[0] + '/..')
from program import ProgramTest  # noqa: E402


class Hints(ProgramTest):
    def assert_hints(self, hints):
        for words, expected in hints:
            with self.subTest(words):
                self.assertEqual(expected, self.mistake(*words))

    def test_a_command_that_does_not_exist(self):
        self.assert_hints([
            (['vesrion'], "there is no command \"vesrion\"; did you mean 'trinco version'?"),
            (['lcok', 'job'], "there is no command \"lcok\"; did you mean 'trinco lock'?"),
            (['frobnicate', 'x'],
             "there is no command \"frobnicate\"; 'trinco help' lists those that there are"),
            ([''], "there is no command \"\"; 'trinco help' lists those that there are"),
        ])
        self.assertIn('(5000 bytes)', self.mistake('x' * 5000))

    def test_a_verb_that_does_not_exist(self):
        self.assert_hints([
            (['locks', 'shwo', 'job'],
             "'trinco locks' has no verb \"shwo\"; did you mean 'trinco locks show'?"),
            (['locks', 'nightly', '-o', 'json'],
             "'trinco locks' has no verb \"nightly\"; it is ls, show, watch or break; "
             "did you mean 'trinco locks show nightly -o json'?"),
            (['locks', 'team/*'],
             "'trinco locks' has no verb \"team/*\"; it is ls, show, watch or break; "
             "did you mean 'trinco locks ls 'team/*''?"),
            (['config', 'frobnicate'],
             "'trinco config' has no verb \"frobnicate\"; it is show"),
            (['breaker', 'rest'],
             "'trinco breakers' has no verb \"rest\"; did you mean 'trinco breakers reset'?"),
        ])

    def test_words_that_other_programs_have(self):
        for noun, typed, meant in [
                ('locks', 'list', 'ls'), ('locks', 'release', 'break'),
                ('locks', 'unlock', 'break'), ('breakers', 'list', 'ls'),
                ('breakers', 'enable', 'resume'), ('breakers', 'close', 'reset'),
                ('breakers', 'open', 'trip'), ('breakers', 'delete', 'forget')]:
            with self.subTest((noun, typed)):
                self.assertEqual(f"'trinco {noun}' has no verb \"{typed}\"; did you mean "
                                 f"'trinco {noun} {meant}'?", self.mistake(noun, typed, 'x'))
                self.answer(noun, meant, '--help')
        for typed, meant in [('status', "'trinco locks' or 'trinco breakers'"),
                             ('unlock', "'trinco locks break'")]:
            self.assertEqual(f'there is no command "{typed}"; did you mean {meant}?',
                             self.mistake(typed, 'nightly'))

    def test_a_verb_behind_the_wrong_word(self):
        said = self.mistake('lock', 'ls')
        self.assertTrue(said.startswith("'trinco locks ls' lists locks"), said)
        self.assertTrue(said.endswith("; 'trinco lock NAME -- COMMAND' runs a command"), said)

    def test_a_command_that_is_not_behind_the_dashes(self):
        self.assert_hints([
            (['lock', 'job', 'true'],
             "put the command behind --: 'trinco lock job -- true'"),
            (['lock', 'job', 'curl', '-s', 'a b'],
             "put the command behind --: 'trinco lock job -- curl -s 'a b''"),
            (['lock', 'job', '--wait', '3s', 'true', '--frobnicate'],
             "put the command behind --: 'trinco lock job --wait 3s -- true --frobnicate'"),
            (['lock', 'job'],
             "what shall run? Put it behind --: 'trinco lock job -- COMMAND'"),
            (['lock', 'job', '--'],
             "what shall run? Put it behind --: 'trinco lock job -- COMMAND'"),
            (['call', 'payments', '--timeout=2s'],
             "what shall run? Put it behind --: 'trinco call payments --timeout=2s -- COMMAND'"),
        ])

    def test_words_of_flock(self):
        self.assert_hints([
            (['lock', 'x', '-n', 'echo', 'hi'],
             "\"-n\" takes a number here; did you mean 'trinco lock x --no-wait -- echo hi'?"),
            (['lock', '-n', 'x', '--', 'true'],
             "\"-n\" takes a number here; did you mean 'trinco lock --no-wait x -- true'?"),
            (['lock', 'x', '-w', '5', 'echo', 'hi'],
             "\"-w\" is an option of flock; did you mean 'trinco lock x --wait 5s -- echo hi'?"),
            (['lock', 'x', '--ttl', '9s', '-w', '5', '--', 'true'],
             "\"-w\" is an option of flock; "
             "did you mean 'trinco lock x --ttl 9s --wait 5s -- true'?"),
            (['lock', '-s', 'x', '-E', '9'],
             "\"-s\" is an option of flock; "
             "did you mean 'trinco lock --shared x --code-not-acquired 9 -- COMMAND'?"),
            (['lock', 'x', '-c', 'echo hi; echo there'],
             "\"-c\" is an option of flock; "
             "did you mean 'trinco lock x -- sh -c 'echo hi; echo there''?"),
        ])
        # What is right is not doubted, and another mistake is named for what it is.
        self.assert_hints([
            (['lock', 'x', '-n', '3'],
             "what shall run? Put it behind --: 'trinco lock x -n 3 -- COMMAND'"),
            (['lock', 'x', '-n', '0', '--', 'true'],
             '--permits "0" is not a number of 1 to 1000000'),
        ])

    def test_dashes_that_are_not_the_two(self):
        for dashes in ('-', '\u2013', '\u2014', '-\u2013', '\u2212', '---'):
            self.assertTrue(self.mistake('lock', 'x', dashes, 'echo', 'hi').endswith(
                " stands where -- does; did you mean 'trinco lock x -- echo hi'?"), dashes)
        self.assertTrue(self.mistake('call', 'x', '--timeout', '2s', '\u2014', 'ls', '-l').endswith(
            "did you mean 'trinco call x --timeout 2s -- ls -l'?"))

    def test_what_only_a_shell_can_run(self):
        for command, hint in [
                (['echo hi; echo there'],
                 "a shell takes such a line: sh -c 'echo hi; echo there'"),
                (['cd', '/tmp'], "only a shell knows it: sh -c 'cd /tmp'"),
                (['FOO=1', 'env'], "a variable is set by env: env FOO=1 env")]:
            for words in (['lock', 'x'], ['call', 'x']):
                with self.subTest(words + command):
                    said = self.mistake(*words, '--', *command, code=127)
                    self.assertTrue(said.startswith('there is no command "'), said)
                    self.assertTrue(said.endswith('"; ' + hint), said)
        self.assertEqual('there is no command "no-such-thing"',
                         self.mistake('lock', 'x', '--', 'no-such-thing', 'a b', code=127))

    def test_a_store_that_ends_with_the_program(self):
        for words in (['lock', 'x', '--locks', 'memory:', '--', 'true'],
                      ['call', 'x', '--breakers', 'memory:jobs', '--', 'true'],
                      ['locks', 'ls', '--locks', 'memory:'],
                      ['breakers', 'ls', '--breakers', 'memory:']):
            with self.subTest(words):
                said = self.mistake(*words)
                self.assertIn('is gone with this process and shared with nobody; use local:', said)

    def test_a_command_behind_a_word_that_runs_none(self):
        self.assert_hints([
            (['locks', 'job', '--', 'sh', '-c', 'echo $x'],
             "'trinco locks' runs no command; did you mean "
             "'trinco lock job -- sh -c 'echo $x''?"),
            (['config', 'show', '--', 'true'],
             "'trinco config show' runs no command; nothing is expected behind --"),
            (['version', '--'],
             "'trinco version' runs no command; nothing is expected behind --"),
        ])

    def test_an_option_that_does_not_exist(self):
        self.assert_hints([
            (['lock', '--wiat', '3s', 'job', '--', 'true'],
             'there is no option "--wiat"; did you mean --wait?'),
            (['lock', 'job', '--wiat', '3s'],
             'there is no option "--wiat"; did you mean --wait?'),
            (['lock', 'job', '--frobnicate', '--', 'true'],
             "there is no option \"--frobnicate\"; 'trinco lock --help' lists what there is"),
            (['breakers', 'ls', '--outptu=json'],
             'there is no option "--outptu"; did you mean --output?'),
            (['--bad'],
             'there is no option "--bad" in front of a command; '
             'those of a command stand behind it'),
            (['--verison'],
             'there is no option "--verison" in front of a command; did you mean --version?'),
            (['--help', 'lock'],
             "\"lock\" was not expected; 'trinco help' lists the commands"),
        ])

    def test_a_value_that_does_not_fit(self):
        self.assert_hints([
            (['lock', 'job', '--wait', '30', '--', 'true'],
             '--wait "30" has no unit: 30s are seconds, 30ms milliseconds'),
            (['lock', 'job', '--ttl', '-3s', '--', 'true'],
             '--ttl "-3s" is negative; it is 1s to 1d'),
            (['lock', 'job', '--wait', '3 sec', '--', 'true'],
             '--wait "3 sec" has the unknown unit "sec"; units are ms, s, min (or m), h and d'),
            (['version', '-o', 'xml'], '--output "xml" is not known; it is table or json'),
            (['version', '-o'], '"-o" needs table|json behind it'),
            (['version', '-o', 'json', '-o', 'table'],
             '--output is given 2 times: "json" and "table"; once is enough'),
            (['version', 'now'],
             "\"now\" was not expected; 'trinco version --help' lists what there is"),
        ])

    def test_help_for_what_does_not_exist(self):
        self.assert_hints([
            (['help', 'option'],
             "there is no topic or command \"option\"; did you mean 'trinco help options'?"),
            (['help', 'nothing-like-it'],
             "there is no topic or command \"nothing-like-it\"; "
             "'trinco help' lists what there is"),
            (['help', 'locks', 'shwo'],
             "there is no verb \"shwo\"; did you mean 'trinco help locks show'?"),
            (['help', 'urls', 'extra'],
             "\"extra\" was not expected behind 'trinco help urls'"),
            (['completion', 'tcsh'],
             'there is no completion for "tcsh"; it is bash, zsh or fish'),
        ])

    def test_a_singular_noun_is_the_plural(self):
        for words in (['breaker', 'ls', '--help'], ['breaker', 'trip', '-h']):
            self.assertEqual(self.answer('breakers', *words[1:]), self.answer(*words))


if __name__ == '__main__':
    ProgramTest.program = sys.argv.pop(1)
    ProgramTest.has_local = sys.argv.pop(1) == '1'
    unittest.main()
