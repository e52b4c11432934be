#!/usr/bin/env python3
"""`trinco lock` in front of a person: keys and jobs, under a real terminal and a real shell. All
the manners of a supervised command are tested in tests/apps/process; here are those that have to
do with the lock, and that the program as a whole has them."""

import pathlib
import shlex
import sys

import scene
from scene import Scene, state_of, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'process'))
from pseudo_terminal import Shell  # noqa: E402

CTRL_C, CTRL_Z = '\x03', '\x1a'
READER = 'echo run""ning; read line; echo "got <$line>"'
QUIET = 'echo run""ning; exec sleep 100'


class AtATerminal(Scene):
    def setUp(self):
        super().setUp()
        self.shell = Shell(self.environment)
        self.addCleanup(self.shell.close)

    def type_lock(self, name, *words):
        self.shell.run(shlex.join(self.words(name, *words)))

    def expect_code(self, code):
        self.shell.prompt()
        self.shell.run('echo code:$?')
        self.shell.expect(f'code:{code}\r')

    def test_a_command_reads_what_is_typed(self):
        self.type_lock('job', '--', 'sh', '-c', READER)
        self.shell.expect('running')
        self.shell.type('hello\n')
        self.shell.expect('got <hello>')
        self.expect_code(0)

    def test_ctrl_c_ends_the_command_and_frees_the_lock(self):
        self.type_lock('job', '--', 'sh', '-c', QUIET)
        self.shell.expect('running')
        self.shell.type(CTRL_C)
        self.expect_code(130)
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)

    def test_ctrl_c_ends_a_wait_and_the_loop_around_it(self):
        holder = self.hold('job')
        line = shlex.join(self.words('job', '-v', '--', 'true'))
        self.shell.run(f'for i in 1 2 3; do {line}; echo went""on; done')
        self.shell.expect('1 ahead')
        self.shell.type(CTRL_C)
        self.shell.expect('interrupted while waiting')
        self.expect_code(130)
        self.assertNotIn('wenton', self.shell.seen)
        self.assertEqual(1, self.entries('job'))
        self.assertEqual(0, holder.let_go())

    def test_a_wait_says_once_what_it_waits_for(self):
        holder = self.hold('job')
        self.type_lock('job', '--', 'echo', 'granted')
        self.shell.expect(r'trinco: the lock "job": 1 ahead; held for \S+ m?s by "\S+ sh"\r')
        holder.let_go()
        self.shell.expect('granted\r')
        self.expect_code(0)
        holder = self.hold('job')
        self.type_lock('job', '--quiet', '--wait', '1500ms', '--', 'true')
        self.expect_code(75)
        self.assertNotIn('ahead', self.shell.seen)
        # Nobody reads a log at that moment.
        self.assertNotIn('ahead', self.run_lock('job', '--wait', '1500ms', '--', 'true').stderr)
        self.assertEqual(0, holder.let_go())

    def test_ctrl_z_says_how_long_the_lock_is_kept_and_fg_goes_on(self):
        self.type_lock('job', '--ttl', '60s', '--', 'sh', '-c', f'{READER}; {READER}')
        self.shell.expect('running')
        # The terminal is the command's once it has read; at that moment a key may miss it, as with
        # any shell.
        self.shell.type('first\n')
        self.shell.expect('got <first>')
        self.shell.type(CTRL_Z)
        self.shell.expect('the lock "job" is kept for 5[0-9] s more while the command is stopped')
        self.shell.prompt()
        self.assertEqual(75, self.run_lock('job', '--no-wait', '--', 'true').returncode)
        self.shell.run('fg')
        self.shell.type('back\n')
        self.shell.expect('got <back>')
        self.expect_code(0)

    def test_fg_when_the_lock_is_lost(self):
        self.type_lock('job', '--ttl', '1s', '--', 'sh', '-c', QUIET)
        self.shell.expect('running')
        self.shell.type(CTRL_Z)
        self.shell.expect('is kept for')
        self.shell.prompt()
        # Somebody else gets it in the meantime, the stopped command having been killed.
        self.assertEqual(0, self.run_lock('job', '--', 'true').returncode)
        self.shell.run('fg')
        self.shell.expect('the lock "job" was lost while the command ran')
        self.expect_code(76)

    def test_ctrl_z_while_waiting(self):
        holder = self.hold('job')
        self.type_lock('job', '-v', '--', 'echo', 'granted')
        self.shell.expect('1 ahead')
        self.shell.type(CTRL_Z)
        self.shell.expect('Stopped')
        self.shell.prompt()
        self.shell.run('fg')
        holder.let_go()
        self.shell.expect('granted\r')
        self.expect_code(0)


if __name__ == '__main__':
    scene.main()
