#!/usr/bin/env python3
"""`trinco elect` as a whole, on `local:`."""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading

import elections
import scene
from elections import ElectionScene, STUBBORN
from scene import wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'process'))
from pseudo_terminal import Shell  # noqa: E402


class AsksBack(ElectionScene):
    def ask_back(self, name):
        done = self.run_words([scene.PROGRAM, 'locks', 'break', name, '--confirm', name])
        self.assertEqual(0, done.returncode, done.stderr)


class OnLocal(elections.Common, AsksBack):
    pass


class AtATerminal(AsksBack):
    def setUp(self):
        super().setUp()
        self.shell = Shell(self.environment)
        self.addCleanup(self.shell.close)

    def type_elect(self, *words):
        self.shell.run(shlex.join([scene.PROGRAM, 'elect', 'chief', *words]))

    def expect_code(self, code):
        self.shell.prompt()
        self.shell.run('echo code:$?')
        self.shell.expect(f'code:{code}\r')

    def test_ctrl_c_at_a_command_that_is_being_stopped_ends_both(self):
        script = 'trap "" TERM; echo run""ning; while :; do sleep 0.01; done'
        self.type_elect('--ttl', '60s', '--grace', '17s', '--', 'sh', '-c', script)
        self.shell.expect('running')
        asking = threading.Thread(target=self.ask_back, args=('chief',))  # until it is given back
        asking.start()
        self.shell.expect('the command gets TERM')
        self.shell.type('\x03')
        self.expect_code(130)
        asking.join()
        self.assertNotIn('stands again', self.shell.everything)

    def test_a_candidate_ends_with_its_terminal(self):
        first = self.candidate('chief')
        self.leads(first)
        self.type_elect('--verbose', '--', 'true')
        self.shell.expect('1 ahead')
        os.kill(self.shell.foreground(), signal.SIGHUP)
        self.shell.expect('interrupted while waiting')
        self.expect_code(129)
        first.process.stdin.close()
        self.assertEqual(3, first.end())


class Pauses(ElectionScene):
    def guardian_of(self, command):
        return scene.parent_of(command)

    def test_a_paused_leader_is_stopped_and_leads_again(self):
        first = self.candidate('chief', '--ttl', '2s', script=STUBBORN)
        token, command = self.leads(first)
        second = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        first.signal(signal.SIGSTOP)
        later, _ = self.leads(second)
        self.assertFalse(scene.is_alive(command))
        first.signal(signal.SIGCONT)
        wait_until(lambda: 'it stands again' in first.said, first.said)
        second.process.stdin.close()
        last, _ = self.leads(first)
        self.assertEqual(sorted({token, later, last}), [token, later, last])

    def test_all_of_it_paused_stands_again_whoever_wakes_first(self):
        """The wrapper wakes before the guardian, which it takes for paused and kills."""
        first = self.candidate('chief', '--ttl', '2s', script=STUBBORN)
        token, command = self.leads(first)
        guardian = self.guardian_of(command)
        for pid in (guardian, command, first.pid):
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: self.entries('chief') == 0, 'the end of the lease')
        pid = first.pid
        first.signal(signal.SIGCONT)
        again, other = self.leads(first)
        self.assertGreater(again, token)
        self.assertFalse(scene.is_alive(guardian))
        self.assertFalse(scene.is_alive(command))
        self.assertEqual(pid, scene.parent_of(self.guardian_of(other)))
        name = pathlib.Path(f'/proc/{pid}/comm').read_text(encoding='ascii')
        self.assertEqual(pathlib.Path(scene.PROGRAM).name, name.strip())
        # And a signal does what it did before.
        first.signal(signal.SIGHUP)
        self.assertEqual(129, first.end())

    def test_a_configuration_that_can_be_read_once_leads_nowhere_else(self):
        read, write = os.pipe()
        os.write(write, f'[locks]\nstore = "{self.store}"\n'.encode())
        os.close(write)
        environment = dict(self.environment)
        del environment['TRINCO_LOCKS'], environment['TRINCO_CONFIG']
        environment['HOME'] = str(self.folder)
        first = scene.Lock([scene.PROGRAM, 'elect', 'chief', '--ttl', '2s', '--config',
                            f'/dev/fd/{read}', '--', 'sh', '-c', STUBBORN],
                           env=environment, pass_fds=[read])
        self.addCleanup(first.close)
        os.close(read)
        _, command = self.leads(first)
        for pid in (self.guardian_of(command), command, first.pid):
            os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: self.entries('chief') == 0, 'the end of the lease')
        first.signal(signal.SIGCONT)
        self.assertEqual(76, first.end())
        self.assertIn('cannot be read once more', first.said)

    def test_the_guardian_alone_killed_ends_it(self):
        first = self.candidate('chief', script=STUBBORN)
        _, command = self.leads(first)
        os.kill(self.guardian_of(command), signal.SIGKILL)
        self.assertEqual(137, first.end())
        self.assertFalse(scene.is_alive(command))
        self.assertIn('guardian was killed', first.said)

    def test_it_stands_twenty_times_with_one_guardian_and_as_many_descriptors(self):
        first = self.candidate('chief', '--ttl', '9s',
                               script='echo $TRINCO_TOKEN $$; exec sleep 60')
        seen = []
        guardians = set()
        for _ in range(20):
            token, command = self.leads(first)
            seen.append(token)
            guardians.add(self.guardian_of(command))
            if len(seen) == 3:
                most = self.descriptors(first.pid, *guardians)
            done = self.run_words([scene.PROGRAM, 'locks', 'break', 'chief', '--confirm', 'chief'])
            self.assertEqual(0, done.returncode, done.stderr)
        self.leads(first)
        self.assertEqual(sorted(set(seen)), seen)
        self.assertEqual(1, len(guardians))
        # One more may be open for a moment, while a command begins.
        wait_until(lambda: self.descriptors(first.pid, *guardians) <= most, 'as few descriptors')

    @staticmethod
    def descriptors(*processes):
        return sum(len(os.listdir(f'/proc/{pid}/fd')) for pid in processes)

    def test_the_file_of_the_store_is_removed(self):
        first = self.candidate('chief', '--ttl', '3s', script=STUBBORN)
        _, command = self.leads(first)
        os.rename(self.folder / 'x.db', self.folder / 'away.db')
        self.assertEqual(69, first.end())
        self.assertFalse(scene.is_alive(command))
        self.assertIn('was removed or replaced', first.said)


class Mistakes(ElectionScene):
    def mistake(self, *words, code=64):
        done = self.run_words([scene.PROGRAM, 'elect', *words])
        self.assertEqual((code, ''), (done.returncode, done.stdout), (words, done.stderr))
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        return done.stderr

    def test_each_is_one_sentence(self):
        run = ('--', 'true')
        self.assertIn('1 to 4096 bytes', self.mistake('chief', '--value', '', *run))
        self.assertIn('1 to 4096 bytes', self.mistake('chief', '--value', 'a\nb', *run))
        self.assertIn('1 to 4096 bytes', self.mistake('chief', '--value', 'x' * 4097, *run))
        self.assertIn('leave out one of them',
                      self.mistake('chief', '--observe', '--value', 'a'))
        self.assertIn('leave out one of them', self.mistake('chief', '--observe', '--no-wait'))
        self.assertIn('runs no command with these options',
                      self.mistake('chief', '--observe', *run))
        self.assertIn('add --observe', self.mistake('chief', '-o', 'json', *run))
        self.assertIn('term or kill', self.mistake('chief', '--on-lost', 'ignore', *run))
        self.assertIn("'trinco elect chief -- COMMAND'", self.mistake('chief'))
        self.assertIn("'trinco elect chief -- scheduler'", self.mistake('chief', 'scheduler'))
        self.assertIn('//', self.mistake('a//b', *run))
        self.assertIn('//', self.mistake('a//b', '--observe'))
        self.assertIn('contradict', self.mistake('chief', '--wait', '3s', '--no-wait', *run))
        self.assertIn('whole seconds', self.mistake('chief', '--ttl', '1500ms', *run))
        self.mistake('chief', '--locks', 'local:/none/x.db', '--observe', code=69)
        self.mistake('chief', '--locks', 'memory:', *run)

    def test_completion_knows_it(self):
        words = [scene.PROGRAM, 'complete', '--', 'elect', 'chief', '--ob']
        self.assertEqual('--observe\n', self.run_words(words).stdout)
        first = self.candidate('chief')
        self.leads(first)
        words = [scene.PROGRAM, 'complete', '--', 'elect', 'ch']
        self.assertEqual('chief\n', self.run_words(words).stdout)

    def test_nobody_reads_what_is_observed(self):
        observer = subprocess.Popen([scene.PROGRAM, 'elect', 'chief', '--observe'],
                                    env=self.environment, stdout=subprocess.PIPE)
        self.addCleanup(observer.kill)
        observer.stdout.readline()
        observer.stdout.close()
        self.assertEqual(74, observer.wait(timeout=scene.PATIENCE))


if __name__ == '__main__':
    scene.main()
