#!/usr/bin/env python3
"""The two executables of the program: that trinco goes on as trinco-fleet where it has to and
nowhere else, that nobody sees a difference, and what is said when the second one is not there.
Takes the path of trinco, which was built with local: and with a server, and of trinco-fleet."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from program import ProgramTest

FLEET = ''
# Nobody listens on port 1 of the loopback, so the command runs without the breaker.
NOWHERE = 'redis://127.0.0.1:1'
CALL = ['call', 'b', '--on-no-store', 'run', '--']


class Executables(ProgramTest):
    def without(self, *names):
        for name in names:
            self.environment.pop(name, None)

    def executable_of_guardian(self, *words, **how):
        """Name of the executable that starts the command of `words`."""
        done = self.run_program(*words, 'sh', '-c', 'readlink /proc/$PPID/exe', **how)
        self.assertEqual(0, done.returncode, done.stderr)
        return pathlib.Path(done.stdout.strip()).name

    def test_what_is_on_this_machine_is_done_by_the_small_one(self):
        self.assertEqual('trinco', self.executable_of_guardian('lock', 'x', '--'))
        self.assertEqual('trinco', self.executable_of_guardian(*CALL))
        # A command uses one of the two stores, and the other one may be anything.
        self.environment['TRINCO_BREAKERS'] = NOWHERE
        self.assertEqual('trinco', self.executable_of_guardian('lock', 'x', '--'))

    def test_a_server_is_used_by_the_whole_one_wherever_it_is_named(self):
        self.assertEqual('trinco-fleet', self.executable_of_guardian(
            'call', 'b', '--on-no-store', 'run', '--breakers', NOWHERE, '--'))
        file = self.write('fleet.toml', f'[breakers]\nstore = "{NOWHERE}"\n')
        self.assertEqual('trinco', self.executable_of_guardian(*CALL))
        self.environment['TRINCO_CONFIG'] = file
        self.assertEqual('trinco', self.executable_of_guardian(*CALL))  # the variable counts more
        self.without('TRINCO_BREAKERS')
        self.assertEqual('trinco-fleet', self.executable_of_guardian(*CALL))
        self.environment['TRINCO_BREAKERS'] = NOWHERE
        self.environment['TRINCO_CONFIG'] = str(self.folder / 'none.toml')
        self.assertEqual('trinco-fleet', self.executable_of_guardian(*CALL))

    def test_a_configuration_that_can_be_read_once_is_read_by_who_needs_it(self):
        self.without('TRINCO_BREAKERS', 'TRINCO_CONFIG')
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.write(writing, f'[breakers]\nstore = "{NOWHERE}"\n'.encode())
        os.close(writing)
        self.assertEqual('trinco-fleet', self.executable_of_guardian(
            'call', 'b', '--config', f'/dev/fd/{reading}', '--on-no-store', 'run', '--',
            pass_fds=[reading]))

    @unittest.skipUnless(os.geteuid() == 0, 'only root can be somebody else')
    def test_who_is_in_no_file_is_looked_up_by_the_whole_one(self):
        """It asks the machine's shared objects; a small one without any has the files alone."""
        with open(Executables.program, 'rb') as program:
            has_shared_objects = b'ld-linux' in program.read(4096)
        self.folder.chmod(0o777)
        self.without('TRINCO_CONFIG')
        lock = ['lock', 'x', '--locks', f'local:{self.folder}/own.db', '--']
        self.assertEqual('trinco' if has_shared_objects else 'trinco-fleet',
                         self.executable_of_guardian(*lock, user=54321, group=54321))
        self.assertEqual('trinco', self.executable_of_guardian(*lock, user=0, group=0))
        for file in self.folder.glob('own.db*'):
            file.unlink()
        self.install('bin/trinco')
        done = self.run_program(*lock, 'echo', 'ran', user=54321, group=54321)
        self.assertEqual(('ran\n', '', 0), (done.stdout, done.stderr, done.returncode))
        done = self.run_program('lock', 'x', '--locks', 'local:', '--', 'true', user=54321,
                                group=54321)
        self.assertEqual(69, done.returncode)
        self.assertIn('the user 54321 has no home in the password database', done.stderr)

    def command_sees(self, *options, **how):
        """Words, environment, signals and descriptors of a command, and how it is called."""
        script = ('import os,sys;print(sys.argv[1:],sorted(os.environb.items()),'
                  '*[l for l in open("/proc/self/status") if l.startswith("Sig")'
                  ' and not l.startswith("SigQ")],'
                  'sorted(int(n) for n in os.listdir("/proc/self/fd")),'
                  'open(f"/proc/{os.getppid()}/cmdline").read().replace("\\0"," "),'
                  'open(f"/proc/{os.getppid()}/comm").read(), os.getcwd())')
        done = self.run_program('call', 'b', '--on-no-store', 'run', *options, '--',
                                sys.executable, '-c', script, 'a b', '', '*', "'", 'ä\n', **how)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout.replace(' '.join(options), 'URL')

    def test_the_command_sees_no_difference(self):
        def signals():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
            os.close(0)
        here = ['--breakers', self.environment['TRINCO_BREAKERS']]
        there = ['--breakers', NOWHERE]
        self.environment['ODD'] = 'a=b\n\udcff'
        for how in ({}, {'preexec_fn': signals}):
            with self.subTest(how):
                self.assertEqual(self.command_sees(*here, **how), self.command_sees(*there, **how))

    def test_a_url_that_is_wrong_is_answered_as_by_the_whole_one(self):
        for url in ('redsi://host', 'valkey://host', 'nowhere', 'etcd:host', 'redis://:9:9'):
            for words in (['breakers', 'ls', '--breakers', url], ['locks', 'ls', '--locks', url],
                          ['doctor', '--breakers', url, '--locks', url],
                          ['demo', '--breakers', url],
                          ['lock', 'x', '--locks', url, '--', 'true'],
                          ['breakers', 'forget', 'b', '--breakers', url]):
                with self.subTest(words):
                    by_fleet = subprocess.run([FLEET, *words], stdin=subprocess.DEVNULL, text=True,
                                              capture_output=True, env=self.environment,
                                              timeout=30, check=False)
                    done = self.run_program(*words)
                    self.assertEqual((by_fleet.returncode, by_fleet.stdout, by_fleet.stderr),
                                     (done.returncode, done.stdout, done.stderr))
                    self.assertNotEqual(0, done.returncode)

    def install(self, *names):
        """A folder with these files; "bin/trinco"."""
        for name in names:
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(FLEET if name.endswith('fleet') else Executables.program, file)
        self.program = str(self.folder / 'bin/trinco')

    def test_it_is_found_where_it_was_installed_also_through_a_link(self):
        self.install('bin/trinco', 'libexec/trinco/trinco-fleet')
        words = ['call', 'b', '--on-no-store', 'run', '--breakers', NOWHERE, '--']
        self.assertEqual('trinco-fleet', self.executable_of_guardian(*words))
        link = self.folder / 'link'
        link.symlink_to(self.program)
        self.program = str(link)
        self.assertEqual('trinco-fleet', self.executable_of_guardian(*words))
        # By a name that the shell looks up.
        self.environment['PATH'] = f'{self.folder}/bin:{self.environment["PATH"]}'
        self.program = 'trinco'
        self.assertEqual('trinco-fleet', self.executable_of_guardian(*words))

    def test_without_the_second_one_there_is_one_sentence_and_the_rest_works(self):
        self.install('bin/trinco')
        self.assertEqual('trinco', self.executable_of_guardian('lock', 'x', '--'))
        for words in (['breakers', 'ls', '--breakers', 'redis://ann:secret@host'],
                      ['lock', 'x', '--locks', NOWHERE, '--', 'true'],
                      ['locks', 'ls', '--locks', NOWHERE],
                      ['doctor', '--breakers', NOWHERE],
                      ['demo', '--breakers', NOWHERE],
                      ['call', 'b', '--breakers', NOWHERE, '--', 'true']):
            if 'secret' in words[-1]:
                words = words[:-2]
                self.environment['TRINCO_BREAKERS'] = 'redis://ann:secret@host'
            with self.subTest(words):
                said = self.mistake(*words, code=69)
                self.assertIn('libexec/trinco/trinco-fleet', said)
                self.assertIn('install the whole of Trinco', said)
                self.assertNotIn('secret', said)
        # Completion is silent, as always when something is wrong.
        self.assertEqual('', self.answer('complete', '--', 'breakers', 'show', ''))
        # A configuration that comes through a pipe is read here, then.
        self.without('TRINCO_LOCKS', 'TRINCO_CONFIG')
        done = self.run_program('lock', 'x', '--config', '/dev/stdin', '--', 'true', stdin=None,
                                input=f'[locks]\nstore = "local:{self.folder}/piped.db"\n')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertTrue((self.folder / 'piped.db').exists())

    def test_what_cannot_be_run_is_named(self):
        self.install('bin/trinco')
        fleet = self.folder / 'libexec/trinco/trinco-fleet'
        fleet.parent.mkdir(parents=True)
        fleet.write_text('no program')
        fleet.chmod(0o644)
        said = self.mistake('breakers', 'ls', '--breakers', NOWHERE, code=69)
        self.assertRegex(said, r'trinco-fleet.* cannot be run: Permission denied')
        fleet.chmod(0o755)
        said = self.mistake('breakers', 'ls', '--breakers', NOWHERE, code=69)
        self.assertRegex(said, r'trinco-fleet.* cannot be run: Exec format error')

    def test_it_never_goes_on_as_itself(self):
        for copy in (shutil.copy, os.symlink, os.link):
            with self.subTest(copy.__name__):
                folder = self.folder / copy.__name__
                (folder / 'bin').mkdir(parents=True)
                (folder / 'libexec/trinco').mkdir(parents=True)
                self.program = str(folder / 'bin/trinco')
                shutil.copy(Executables.program, self.program)
                copy(self.program, folder / 'libexec/trinco/trinco-fleet')
                said = self.mistake('breakers', 'ls', '--breakers', NOWHERE, code=69)
                self.assertIn('trinco-fleet', said)

    def test_the_whole_one_can_do_everything(self):
        for words in (['version'], ['help'], ['help', 'urls'], ['config', 'show'],
                      ['completion', 'bash'], ['complete', '--', 'lo']):
            with self.subTest(words):
                expected = self.answer(*words)
                self.program = FLEET
                self.assertEqual(expected, self.answer(*words))
                self.program = Executables.program
        self.program = FLEET
        self.assertEqual('trinco-fleet', self.executable_of_guardian('lock', 'x', '--'))

    def test_the_small_one_carries_no_library_of_servers(self):
        with open(self.program, 'rb') as file:
            self.assertIsNone(re.search(rb'OpenSSL \d|libssl', file.read()))
        with open(FLEET, 'rb') as file:
            self.assertIsNotNone(re.search(rb'OpenSSL \d|libssl', file.read()))


if __name__ == '__main__':
    Executables.program = os.path.abspath(sys.argv.pop(1))
    FLEET = os.path.abspath(sys.argv.pop(1))
    unittest.main()
