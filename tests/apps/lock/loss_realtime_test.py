#!/usr/bin/env python3
"""When the lock is about to be lost, is lost, or is asked back, while a command runs."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys

import scene
from scene import Scene, boot_time, is_alive, only_child_of, wait_until

# Appends the boot time as fast as it can, until it is ended: nothing of it may be later than the
# grant of the next holder. A TERM does not impress it.
WRITER = '''
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    os.write(out, b'%.6f\\n' % time.clock_gettime(time.CLOCK_BOOTTIME))
    time.sleep(0.001)
'''
# As early as it can.
NEXT = ['sh', '-c', 'exec 3<&0; read up idle < /proc/uptime; echo next; cat <&3 > /dev/null']


class Loss(Scene):
    def start_writing(self, *options):
        written = self.folder / 'written'
        lock = self.start('job', *options, '--', sys.executable, '-c', WRITER, str(written))
        wait_until(lambda: written.exists() and written.stat().st_size > 100, 'the first lines')
        return lock, written

    def test_a_paused_wrapper_writes_nothing_after_the_next_grant(self):
        holder, written = self.start_writing('--ttl', '2s')
        waiter = self.queue_up('job', '--', *NEXT, ahead=1)
        stopped = boot_time()
        holder.signal(signal.SIGSTOP)
        self.assertEqual('next', waiter.line())
        # At the earliest: what the store says is rounded down.
        granted = boot_time() - (self.listed('job')['holders'][0]['held_ms'] + 1) / 1e3
        last = float(written.read_text().split()[-1])
        self.assertGreater(last, stopped)
        # The session stops believing 250 ms before its lease ends.
        self.assertLess(last, granted - 0.05)
        print(f'paused: granted {granted - stopped:.3f} s after the pause; last line '
              f'{granted - last:.3f} s before that')
        # Nothing is written later, either; and the wrapper knows when it runs again.
        waiter.let_go()
        self.assertEqual(last, float(written.read_text().split()[-1]))
        holder.signal(signal.SIGCONT)
        self.assertEqual(76, holder.end())
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" was lost while the command '
                                      r'ran$')

    def test_what_was_taken_away_is_told_also_by_a_command_that_ends_at_once(self):
        """Whoever holds it so shortly is served by nobody, and asks himself."""
        for lasts in ('0', '0.005', '0.01', '0.02', '0.05', '0.2'):
            script = f'"$0" locks break job --force --confirm job > /dev/null 2>&1; sleep {lasts}'
            done = self.run_lock('job', '--on-lost', 'ignore', '--', 'sh', '-c', script,
                                 scene.PROGRAM)
            self.assertEqual(76, done.returncode, (lasts, done.stderr))
            self.assertRegex(done.stderr, 'was lost (while the command ran|before it was given '
                                          'back), which went on without it')

    def test_a_wrapper_that_was_paused_for_a_moment_goes_on(self):
        holder = self.hold('job', '--ttl', '4s')
        holder.signal(signal.SIGSTOP)
        wait_until(lambda: scene.state_of(holder.pid) == 'T', 'the pause')
        holder.signal(signal.SIGCONT)
        self.assertEqual(0, holder.let_go())

    def test_the_command_gets_term_in_time_when_the_store_does_not_answer(self):
        holder = self.start('job', '--ttl', '2s', '--code-lost', '11', '--', 'sh', '-c',
                            'trap "echo told; exit 0" TERM; echo began; while :; do sleep 0.01; '
                            'done')
        self.assertEqual('began', holder.line())
        began = boot_time()
        with open(self.folder / 'x.db-gate', 'r+b') as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            self.assertEqual('told', holder.line())
            took = boot_time() - began
            self.assertEqual(11, holder.end())
            # It does not wait for the store longer than there is something to give back.
            self.assertLess(boot_time() - began, 3.5)
        self.assertLess(took, 2)
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" is about to be lost, [^\n]+: '
                                      r'the command gets TERM, and KILL in 400 ms$')
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" was [^\n]+$')

    def test_the_file_of_the_store_is_removed(self):
        holder = self.start('job', '--ttl', '9s', '--', 'sh', '-c',
                            'trap "echo told; exit 0" TERM; echo began; while :; do sleep 0.01; '
                            'done')
        self.assertEqual('began', holder.line())
        waiter = self.queue_up('job', '--ttl', '3s', '--', 'true', ahead=1)
        began = boot_time()
        shutil.rmtree(self.folder)
        self.assertEqual('told', holder.line())
        took = boot_time() - began
        self.assertEqual((76, 69), (holder.end(), waiter.end()))
        # At the next renewal, and not when the lease ends.
        self.assertLess(took, 5.5)
        print(f'removed: told after {took:.1f} s, with a TTL of 9 s')
        gone = 'the file of its store was removed or replaced'
        self.assertRegex(holder.said, rf'(?m)^trinco: the lock "job" was lost; {gone}: the '
                                      r'command gets TERM, and KILL in \S+ m?s$')
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" was lost while the command '
                                      rf'ran; {gone}$')
        self.assertRegex(waiter.said,
                         rf'(?m)^trinco: the lock "job": {gone} while this one waited$')

    def test_the_file_of_the_store_was_removed_when_the_command_ends(self):
        holder = self.hold('job')
        os.rename(self.folder / 'x.db', self.folder / 'away.db')
        self.assertEqual(76, holder.let_go())
        self.assertRegex(holder.said, r'\Atrinco: the lock "job" was lost while the command ran; '
                                      r'the file of its store was removed or replaced\n\Z')

    def test_kill_at_once_and_ignore(self):
        killed = self.start('a', '--ttl', '3s', '--on-lost', 'kill', '--', 'sh', '-c',
                            'trap "echo told" TERM; echo began; while :; do sleep 0.01; done')
        ignored = self.start('b', '--ttl', '3s', '--on-lost', 'ignore', '--', 'sh', '-c',
                             'trap "echo told" TERM; echo began; cat; echo ended')
        self.assertEqual(['began'] * 2, [killed.line(), ignored.line()])
        os.rename(self.folder / 'x.db', self.folder / 'away.db')
        self.assertEqual(('', 76), (killed.line(), killed.end()))
        wait_until(lambda: 'was lost; the command runs on' in ignored.said, 'the notice')
        ignored.process.stdin.close()
        self.assertEqual(('ended', 76), (ignored.line(), ignored.end()))
        self.assertIn('which went on without it', ignored.said)

    def test_kill_9_of_the_wrapper_takes_all_descendants_along(self):
        holder = self.start('job', '--', 'sh', '-c',
                            'setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; wait')
        family = [int(holder.line()) for _ in range(3)]
        self.assertTrue(all(is_alive(pid) for pid in family))
        holder.signal(signal.SIGKILL)
        wait_until(lambda: not any(is_alive(pid) for pid in family), 'the end of all')
        self.assertEqual(0, self.run_lock('job', '--wait', '5s', '--', 'true').returncode)

    def test_what_outlives_wrapper_and_guardian_keeps_the_lock(self):
        holder = self.start('job', '--', 'sh', '-c', 'sleep 1000 & echo $!; echo $$; wait')
        orphan, command = int(holder.line()), int(holder.line())
        self.addCleanup(scene.kill_if_there, orphan)
        holder.signal(signal.SIGSTOP)
        os.kill(scene.parent_of(command), signal.SIGKILL)
        wait_until(lambda: not is_alive(command), 'the end of the command')
        holder.signal(signal.SIGKILL)
        holder.process.wait()
        self.assertTrue(is_alive(orphan))
        self.assertEqual(75, self.run_lock('job', '--wait', '300ms', '--', 'true').returncode)
        waiter = self.queue_up('job', '--', 'echo', 'next', ahead=1)
        os.kill(orphan, signal.SIGKILL)
        self.assertEqual(('next', 0), (waiter.line(), waiter.end()))

    def test_the_lock_is_held_until_the_last_descendant_is_gone(self):
        holder = self.start('job', '--', 'sh', '-c',
                            'exec 9<&0; cat <&9 > /dev/null & echo began; exit 0')
        self.assertEqual('began', holder.line())
        waiter = self.queue_up('job', '--', 'echo', 'next', ahead=1)
        self.assertIsNone(holder.process.poll())
        holder.process.stdin.close()
        self.assertEqual(0, holder.end())
        self.assertEqual(('next', 0), (waiter.line(), waiter.end()))

    def test_asked_back_by_an_operator(self):
        holder = self.start('job', '--', 'sh', '-c',
                            'trap "echo told; exit 0" TERM; echo began; while :; do sleep 0.01; '
                            'done')
        self.assertEqual('began', holder.line())
        waiter = self.queue_up('job', '--', 'echo', 'next', ahead=1)
        done = self.locks('break', 'job', '--reason', 'maintenance', '--confirm', 'job')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual(('told', 76), (holder.line(), holder.end()))
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" is asked back by an operator: '
                                      r'the command gets TERM, and KILL in 3 s$')
        self.assertRegex(holder.said, r'(?m)^trinco: the lock "job" was given back: \S+ asked for '
                                      r'it back \("maintenance"\)$')
        self.assertEqual(('next', 0), (waiter.line(), waiter.end()))


class OtherSpaces(Scene):
    def test_a_holder_in_another_pid_namespace_is_not_taken_for_dead(self):
        unshare = shutil.which('unshare')
        if not unshare or subprocess.run([unshare, '-p', '-f', 'true'], check=False,
                                         capture_output=True).returncode != 0:
            self.skipTest('this user may not make PID namespaces')
        inside = [unshare, '-p', '-f', '--kill-child', *self.words(
            'job', '--', 'sh', '-c', 'echo began; exec cat')]
        holder = scene.Lock(inside, env=self.environment)
        self.addCleanup(holder.close)
        self.assertEqual('began', holder.line())
        # Longer than a waiter looks at the kernel's word, many times over.
        self.assertEqual(75, self.run_lock('job', '--wait', '1s', '--', 'true').returncode)
        waiter = self.queue_up('job', '--', 'echo', 'next', ahead=1)
        holder.let_go()
        self.assertEqual(('next', 0), (waiter.line(), waiter.end()))


class TooLate(Scene):
    def test_a_command_that_got_no_time_to_begin(self):
        """Its guardian was paused from before the grant until the time that it was given then."""
        holder = self.hold('job')
        waiter = self.queue_up('job', '--ttl', '2s', '--', 'true', ahead=1)
        guardian = only_child_of(waiter.pid)
        os.kill(guardian, signal.SIGSTOP)
        holder.let_go()
        wait_until(lambda: 'granted' in waiter.said, 'the grant')
        end = boot_time() + 2.5
        wait_until(lambda: boot_time() > end)
        os.kill(guardian, signal.SIGCONT)
        self.assertEqual(76, waiter.end())
        self.assertIn('before the command began', waiter.said)

    def test_a_waiter_whose_guardian_is_killed_leaves_the_queue_at_once(self):
        holder = self.hold('job')
        waiter = self.queue_up('job', '--', 'true', ahead=1)
        os.kill(only_child_of(waiter.pid), signal.SIGKILL)
        self.assertEqual(137, waiter.end())
        self.assertIn('the guardian of the command was killed while this one waited', waiter.said)
        self.assertEqual(1, self.entries('job'))
        self.assertEqual(0, holder.let_go())


if __name__ == '__main__':
    scene.main()
