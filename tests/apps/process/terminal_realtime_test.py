#!/usr/bin/env python3
"""A supervised command in front of a person: keys, jobs, pipelines, scripts, under a real terminal.

    terminal_realtime_test.py SUPERVISE_DRIVER
"""

import os
import shlex
import signal
import sys
import unittest

import supervised
from pseudo_terminal import Shell, Terminal
from supervised import SupervisedTest, state, until

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = '\x03', '\x04', '\x1a', '\x1c'
# Never touches the terminal; says when it runs.
QUIET = 'echo run""ning; exec sleep 100'
# Says what it read from the terminal.
READER = 'echo run""ning; read line; echo "got <$line>"'

# Starts a job as a shell does, and says what it finds when that stops.
SMALL_SHELL = '''
import os, signal, sys
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[1], sys.argv[1:])
status = os.waitpid(job, os.WUNTRACED)[1]
owner = 'the job' if os.tcgetpgrp(0) == job else 'another'
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
os.tcsetpgrp(0, os.getpgrp())
print(f'stopped by {os.WSTOPSIG(status)}, terminal: {owner}')
'''


class TerminalTest(SupervisedTest):
    def terminal(self, words):
        terminal = Terminal(words, self.environment)
        self.addCleanup(terminal.close)
        return terminal

    def shell(self):
        shell = Shell(self.environment)
        self.addCleanup(shell.close)
        return shell

    def line(self, *command, options=()):
        return shlex.join(self.words(options, command))

    def script(self, *lines):
        path = self.path('script')
        with open(path, 'w') as file:
            file.write('\n'.join(lines) + '\n')
        return path

    def wait_for_hand_over(self, front):
        """The command has the terminal, and runs: a key counts."""
        until(lambda: front.foreground() == self.command_pid()
              and state(self.command_pid()) == 'S', 'the command to get the terminal')

    def wrapper_pid(self):
        return int(supervised.status_lines(self.guardian_pid())['PPid'])


class LeaderOfTheSession(TerminalTest):
    """As under `ssh -t host trinco ...`: no shell, and nobody who could continue what stops."""

    def test_reads_a_line(self):
        terminal = self.terminal(self.words([], ['sh', '-c', READER]))
        terminal.expect('running')
        terminal.type('hello\n')
        terminal.expect('got <hello>')
        self.assertEqual(terminal.wait(), 0)

    def test_ctrl_c_ends_both_by_that_signal(self):
        for command in (QUIET, 'echo run""ning; read line'):
            terminal = self.terminal(self.words([], ['sh', '-c', command]))
            terminal.expect('running')
            terminal.type(CTRL_C)
            self.assertEqual(os.WTERMSIG(terminal.wait()), signal.SIGINT)
            self.assert_nobody_left()

    def test_ctrl_backslash_too(self):
        terminal = self.terminal(self.words([], ['sh', '-c', 'ulimit -c 0; ' + QUIET]))
        terminal.expect('running')
        terminal.type(CTRL_BACKSLASH)
        self.assertEqual(os.WTERMSIG(terminal.wait()), signal.SIGQUIT)

    def test_ctrl_z_does_not_stop_what_nobody_could_continue(self):
        terminal = self.terminal(self.words([], ['sh', '-c', READER]))
        terminal.expect('running')
        self.wait_for_hand_over(terminal)
        terminal.type(CTRL_Z)
        self.event('stopping')
        until(lambda: state(self.command_pid()) == 'S', 'the command to go on')
        terminal.type('still here\n')
        terminal.expect('got <still here>')
        self.assertEqual(terminal.wait(), 0)

    def test_a_command_that_handles_ctrl_c_keeps_its_code(self):
        command = 'trap "exit 9" INT; echo run""ning; while :; do sleep 0.01; done'
        terminal = self.terminal(self.words([], ['sh', '-c', command]))
        terminal.expect('running')
        terminal.type(CTRL_C)
        self.assertEqual(os.WEXITSTATUS(terminal.wait()), 9)


class Jobs(TerminalTest):
    def test_ctrl_z_and_fg_of_a_command_that_reads(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', READER + '; ' + READER))
        shell.expect('running')
        shell.type('one\n')
        shell.expect('got <one>')
        self.wait_for_hand_over(shell)
        for _ in range(3):
            shell.type(CTRL_Z)
            shell.expect('Stopped')
            shell.prompt()
            self.assertEqual(state(self.command_pid()), 'T')
            self.assertEqual(state(self.wrapper_pid()), 'T')
            shell.run('fg')
            self.wait_for_hand_over(shell)
        shell.type('two\n')
        shell.expect('got <two>')
        shell.prompt()
        self.assertEqual(len([e for e in self.events() if e[0] == 'stopping']), 3)
        shell.run('echo code:$?')
        shell.expect('code:0')

    def test_typed_at_a_prompt_it_has_the_terminal_from_the_start(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', QUIET))
        self.wait_for_hand_over(shell)
        self.assertEqual([e for e in self.events() if e[0] == 'stopped'], [])
        shell.type(CTRL_C)
        shell.prompt()
        self.forget_events()
        shell.run(self.line('sh', '-c', QUIET) + ' | cat')
        shell.expect('running')
        self.assertEqual(shell.foreground(), os.getpgid(self.wrapper_pid()))

    def test_what_is_killed_does_not_leave_the_terminal_in_its_mode(self):
        """As a shell sees to it for commands of its own."""
        raw = f'import os, tty; tty.setraw(0); os.kill(os.getpid(), {int(signal.SIGKILL)})'
        shell = self.shell()
        shell.run(self.line(sys.executable, '-c', raw) + '; echo code $?; stty -a')
        shell.expect('code 137')
        self.assertEqual(shell.expect(r'\s(-?icanon)').group(1), 'icanon')
        lasting = 'stty -icanon; exit 3'
        shell.run(self.line('sh', '-c', lasting) + '; echo code $?; stty -a')
        shell.expect('code 3')
        self.assertEqual(shell.expect(r'\s(-?icanon)').group(1), '-icanon')

    def test_ctrl_z_and_fg_of_a_command_that_does_not(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', QUIET))
        shell.expect('running')
        for _ in range(3):
            shell.type(CTRL_Z)
            shell.expect('Stopped')
            shell.prompt()
            self.assertEqual(state(self.command_pid()), 'T')
            shell.run('fg')
            until(lambda: state(self.command_pid()) == 'S', 'the command to go on')
        self.assertEqual(shell.foreground(), self.command_pid())
        shell.type(CTRL_C)
        shell.prompt()
        shell.run('echo code:$?')
        shell.expect('code:130')
        self.assert_only_shell()

    def assert_only_shell(self):
        until(lambda: len(supervised.marked(self.marker)) == 1, 'all but the shell to end')

    def test_bg_lets_it_run_in_the_background(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', QUIET))
        shell.expect('running')
        shell.type(CTRL_Z)
        shell.expect('Stopped')
        shell.run('bg')
        shell.prompt()
        until(lambda: state(self.command_pid()) == 'S', 'the command to go on')
        shell.run('kill %1; wait %1; echo code:$?')
        shell.expect('code:143')
        self.assert_only_shell()

    def test_in_the_background_it_stops_when_it_reads_as_any_job(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', READER) + ' &')
        shell.expect('running')
        until(lambda: state(self.wrapper_pid()) == 'T', 'the wrapper to stop')
        shell.run('jobs')
        shell.expect('Stopped')
        shell.run('fg')
        self.wait_for_hand_over(shell)
        shell.type('from behind\n')
        shell.expect('got <from behind>')
        shell.prompt()

    def test_a_stopped_job_has_given_the_terminal_back_to_its_group(self):
        """Not every shell takes it from a group that it does not know."""
        terminal = self.terminal([sys.executable, '-c', SMALL_SHELL,
                                  *self.words([], ['sh', '-c', READER])])
        terminal.expect('running')
        self.wait_for_hand_over(terminal)
        terminal.type(CTRL_Z)
        terminal.expect('stopped by 20, terminal: the job')

    def test_what_sets_the_terminal_gets_it(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', 'stty -echo && stty echo && echo se""t') + ' | cat')
        shell.expect('set\r\n')
        shell.prompt()
        self.assertEqual([e[1] for e in self.events() if e[0] == 'stopped'], [signal.SIGTTOU])

    def test_an_interactive_shell_inside(self):
        shell = self.shell()
        shell.run(self.line('bash', '--norc', '--noprofile', '--noediting', '-i'))
        shell.prompt()
        shell.run(shlex.join(['sh', '-c', QUIET]))
        shell.expect('running')
        self.assertNotIn(shell.foreground(), (self.command_pid(), shell.pid))
        shell.type(CTRL_Z)
        shell.expect('Stopped')
        shell.prompt()
        self.assertEqual(state(self.wrapper_pid()), 'S')
        shell.run('fg')
        until(lambda: shell.foreground() not in (self.command_pid(), shell.pid), 'the inner job')
        shell.type(CTRL_C)
        shell.prompt()
        shell.run('exit 7')
        shell.prompt()
        shell.run('echo code:$?')
        shell.expect('code:7')

    def test_one_inside_the_other(self):
        shell = self.shell()
        inner = self.words([], ['sh', '-c', READER])
        shell.run(self.line(*inner))
        shell.expect('running')
        shell.type('deep\n')
        shell.expect('got <deep>')
        shell.prompt()

    def test_lost_while_stopped(self):
        shell = self.shell()
        for options in (['--lost-after-stop'], ['--lost-after-stop', '--renew', 60_000]):
            self.forget_events()
            shell.run(self.line('sh', '-c', QUIET, options=options))
            shell.expect('running')
            shell.type(CTRL_Z)
            shell.expect('Stopped')
            shell.prompt()
            shell.run('fg')
            shell.prompt()
            shell.run('echo code:$?')
            shell.expect('code:76')
            self.assert_only_shell()

    def test_deadlines_count_while_stopped(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', QUIET, options=['--end', 1000]))
        shell.expect('running')
        shell.type(CTRL_Z)
        shell.expect('Stopped')
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to be killed')
        shell.prompt()
        shell.run('fg')
        shell.prompt()
        shell.run('echo code:$?')
        shell.expect('code:76')


class PipelinesAndScripts(TerminalTest):
    def test_a_pager_behind_it_keeps_the_terminal(self):
        shell = self.shell()
        pager = 'n=$(wc -l); echo asking; read answer < /dev/tty; echo "paged <$n> <$answer>"'
        shell.run(self.line('seq', '20000') + ' | ' + shlex.join(['sh', '-c', pager]))
        shell.expect('asking')
        shell.type('next\n')
        shell.expect('paged <20000> <next>')
        shell.prompt()

    def test_a_reader_in_front_of_a_pipe(self):
        shell = self.shell()
        shell.run(self.line('sh', '-c', READER) + ' | cat')
        shell.expect('running')
        shell.type('through\n')
        shell.expect('got <through>')
        shell.prompt()

    def test_ctrl_z_stops_the_pipeline_and_ctrl_c_ends_it(self):
        for command, gets_terminal in ((QUIET, False), ('echo run""ning; read line', True)):
            self.forget_events()
            shell = self.shell()
            shell.run(self.line('sh', '-c', command) + ' | cat; echo codes:${PIPESTATUS[*]}')
            shell.expect('running')
            if gets_terminal:
                self.wait_for_hand_over(shell)
            shell.type(CTRL_Z)
            shell.expect('Stopped')
            shell.prompt()
            shell.run('fg')
            until(lambda: state(self.command_pid()) == 'S', 'the command to go on')
            if gets_terminal:
                self.wait_for_hand_over(shell)
            shell.type(CTRL_C)
            shell.prompt()
            until(lambda: len(supervised.marked(self.marker)) == 1, 'all but the shell to end')
            shell.close()

    def test_ctrl_c_stops_the_script_around_it(self):
        for command, gets_terminal in ((QUIET, False), ('echo run""ning; read line', True)):
            self.forget_events()
            shell = self.shell()
            script = self.script(self.line('sh', '-c', command), 'echo went"" on')
            shell.run(f'bash {script}; echo code:$?')
            shell.expect('running')
            if gets_terminal:
                self.wait_for_hand_over(shell)
            shell.type(CTRL_C)
            shell.prompt()
            shell.run('echo and""then')
            shell.expect('andthen')
            self.assertNotIn('went on', shell.everything)
            until(lambda: len(supervised.marked(self.marker)) == 1, 'all but the shell to end')
            shell.close()

    def test_kill_int_of_the_wrapper_alone_lets_the_script_go_on(self):
        shell = self.shell()
        script = self.script(self.line('sh', '-c', QUIET), 'echo code:$?')
        shell.run(f'bash {script}')
        shell.expect('running')
        os.kill(self.wrapper_pid(), signal.SIGINT)
        shell.expect('code:130')
        shell.prompt()

    def test_the_terminal_comes_back_to_the_script(self):
        shell = self.shell()
        script = self.script(self.line('sh', '-c', READER), 'read line; echo "then <$line>"')
        shell.run(f'bash {script}')
        shell.expect('running')
        shell.type('first\n')
        shell.expect('got <first>')
        shell.type('second\n')
        shell.expect('then <second>')
        shell.prompt()

    def test_the_terminal_comes_back_when_the_wrapper_is_killed(self):
        shell = self.shell()
        go_on = self.path('go-on')
        script = self.script(self.line('sh', '-c', READER),
                             f'until [ -e {go_on} ]; do sleep 0.01; done',
                             'read line; echo "then <$line>"')
        shell.run(f'bash {script}')
        shell.expect('running')
        self.wait_for_hand_over(shell)
        os.kill(self.wrapper_pid(), signal.SIGKILL)
        until(lambda: not supervised.is_alive(self.command_pid()), 'the command to end')
        until(lambda: shell.foreground() != self.command_pid(), 'the terminal to come back')
        open(go_on, 'w').close()
        shell.type('second\n')
        shell.expect('then <second>')
        shell.prompt()

    def test_input_of_a_pipe_needs_no_terminal(self):
        shell = self.shell()
        shell.run('echo piped | ' + self.line('sh', '-c', READER))
        shell.expect('got <piped>')
        shell.prompt()
        self.assertEqual([e for e in self.events() if e[0] == 'stopped'], [])

    def test_a_terminal_that_goes_away_takes_all_along(self):
        for command in (QUIET, READER):
            shell = self.shell()
            shell.run(self.line('sh', '-c', command))
            shell.expect('running')
            shell.hang_up()
            self.assert_nobody_left()
            leader = self.terminal(self.words([], ['sh', '-c', command]))
            leader.expect('running')
            leader.hang_up()
            self.assert_nobody_left()


class LeftBehind(TerminalTest):
    """The command has ended, what it started has not: the keys are for that now."""

    def leave_behind(self, script):
        """A command that has the terminal when it ends."""
        shell = self.shell()
        shell.run(self.line('sh', '-c', READER + '; ' + script))
        shell.expect('running')
        self.wait_for_hand_over(shell)
        shell.type('go\n')
        shell.expect('got <go>')
        self.event('ended')
        return shell

    def test_ctrl_c_ends_it_wherever_it_is(self):
        shell = self.leave_behind('setsid sleep 100 & exit 6')
        until(lambda: shell.foreground() == os.getpgid(self.wrapper()), 'the terminal to come back')
        shell.type(CTRL_C)
        shell.prompt()
        shell.run('echo code:$?')
        shell.expect('code:6')

    def test_ctrl_z_and_fg(self):
        shell = self.leave_behind('setsid sh -c "sleep 100; true" & exit 6')
        until(lambda: shell.foreground() == os.getpgid(self.wrapper()), 'the terminal to come back')
        shell.type(CTRL_Z)
        shell.expect('Stopped')
        shell.prompt()
        shell.run('fg')
        until(lambda: state(self.wrapper()) == 'S', 'the wrapper to go on')
        shell.type(CTRL_C)
        shell.prompt()
        shell.run('echo code:$?')
        shell.expect('code:6')

    def test_it_cannot_have_the_terminal_and_is_told(self):
        may_read = self.path('may-read')
        reader = f'until [ -e {may_read} ]; do sleep 0.01; done; read line < /dev/tty; sleep 100'
        shell = self.leave_behind(f'({reader}) & exit 6')
        until(lambda: shell.foreground() == os.getpgid(self.wrapper()), 'the terminal to come back')
        open(may_read, 'w').close()
        shell.prompt()
        self.assertEqual(len(supervised.marked(self.marker)), 1)

    def test_what_was_stopped_is_told(self):
        is_stopped = 'grep -q "^State:.T" /proc/$!/status'
        shell = self.leave_behind(f'sleep 100 & kill -STOP $!; until {is_stopped}; do :; done')
        shell.prompt()
        self.assertEqual(len(supervised.marked(self.marker)), 1)

    def wrapper(self):
        guardian, = (pid for pid in supervised.marked(self.marker)
                     if supervised.status_lines(pid).get('Name') == 'trinco-guardian')
        return int(supervised.status_lines(guardian)['PPid'])


if __name__ == '__main__':
    supervised.DRIVER = [sys.argv.pop(1)]
    unittest.main()
