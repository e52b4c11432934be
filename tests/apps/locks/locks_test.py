#!/usr/bin/env python3
"""`trinco locks` from outside: what is listed, what is watched, and taking a lock back. Takes the
program's path."""

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'lock'))
import scene
from scene import PATIENCE, PROGRAM, Scene, boot_time, wait_until


class Listing(Scene):
    def rows(self, *words):
        done = self.locks(*words)
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        return [line.split() for line in done.stdout.splitlines()]

    def test_nothing_is_a_sentence_for_people_and_nothing_for_programs(self):
        done = self.locks('ls')
        self.assertEqual((0, ''), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r'\Atrinco: nobody holds a lock or waits for one in '
                                      r'the store local:[^\n]+\n\Z')
        self.assertIn('whose name begins with "a/"', self.locks('ls', 'a/').stderr)
        self.assertEqual({'schema': 1, 'locks': []},
                         json.loads(self.locks('ls', '-o', 'json').stdout))
        done = self.locks('-o', 'name')
        self.assertEqual(('', ''), (done.stdout, done.stderr))
        done = self.locks('show', 'x')
        self.assertEqual(1, done.returncode)
        self.assertIn('nobody holds the lock "x" or waits for it', done.stderr)
        done = self.locks('show', 'x', '-o', 'json')
        self.assertEqual((1, ''), (done.returncode, done.stderr))
        self.assertEqual({'schema': 1, 'name': 'x', 'holders': [], 'waiters': []},
                         json.loads(done.stdout))
        done = self.locks('show', 'x', '-o', 'name')
        self.assertEqual((1, '', ''), (done.returncode, done.stdout, done.stderr))

    def test_a_row_for_each_lock(self):
        self.hold('b/two', '--label', 'the holder')
        self.hold('a', '-n', '3')
        self.hold('a', '-n', '3')
        self.queue_up('b/two', '--', 'true', ahead=1)
        head, *rows = self.rows()
        self.assertEqual(['NAME', 'HOLDER', 'HELD', 'TTL', 'WAITERS', 'WAIT', 'TOKEN'], head)
        self.assertEqual(['a', 'b/two'], [row[0] for row in rows])
        self.assertEqual(('+1', '0', '-', '-'), (rows[0][3], *rows[0][-3:]))
        # ... HELD TTL, one waiter, its wait in one or two words, token
        self.assertEqual(('the', 'holder'), (rows[1][1], rows[1][2]))
        self.assertIn('1', rows[1][-5:-2])
        self.assertGreater(int(rows[1][-1]), 1 << 32)
        self.assertEqual('a\nb/two\n', self.locks('ls', '-o', 'name').stdout)
        self.assertEqual('b/two\n', self.locks('ls', 'b/', '-o', 'name').stdout)
        self.assertEqual('b/two\n', self.locks('ls', 'b*', '-o', 'name').stdout)
        self.assertEqual('', self.locks('ls', 'b', '-o', 'name').stdout)
        self.assertEqual('b/two\n', self.locks('ls', 'b/two', '-o', 'name').stdout)
        listed = self.listed('b/two')
        self.assertEqual('exclusive', listed['kind'])
        self.assertEqual('the holder', listed['holders'][0]['owner'])
        self.assertLessEqual(listed['holders'][0]['ttl_left_ms'], 15_000)
        self.assertGreaterEqual(listed['longest_wait_ms'], 0)
        self.assertIsNone(self.listed('a')['longest_wait_ms'])
        self.assertEqual(3, self.listed('a')['holders'][0]['n'])

    def test_how_much_it_is_used_is_looked_at(self):
        self.hold('leader')
        users = [self.start('busy', '--', 'sh', '-c', 'sleep 0.4') for _ in range(4)]
        wait_until(lambda: self.entries('busy') >= 3)
        done = self.locks('ls', '--for', '1s', '-o', 'json')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        seen = json.loads(done.stdout)
        self.assertGreaterEqual(seen['looked_ms'], 1_000)
        self.assertGreater(seen['looks'], 5)
        use = {lock['name']: lock['use'] for lock in seen['locks']}
        self.assertEqual(1, use['leader']['share'])
        self.assertEqual(0, use['leader']['grants'])
        self.assertGreater(use['busy']['share'], 0.3)
        self.assertGreaterEqual(use['busy']['grants'], 1)
        self.assertGreater(use['busy']['p99_wait_ms'], 300)
        head, *rows = self.rows('ls', 'leader', '--for', '100ms')
        self.assertEqual(['USED', 'P99-WAIT', 'TOKEN'], head[-3:])
        self.assertIn('100', rows[0])
        for user in users:
            self.assertEqual(0, user.end())

    def test_show_tells_the_queue_in_its_order(self):
        self.hold('job', '--shared', '--label', 'first')
        self.hold('job', '--shared', '--label', 'second')
        self.queue_up('job', '--label', 'writer', '--', 'true', ahead=2)
        self.queue_up('job', '--label', 'reader', '--shared', '--', 'true', ahead=3)
        self.hold('jobs')  # begins like it, and is another
        shown = json.loads(self.locks('show', 'job', '-o', 'json').stdout)
        self.assertEqual((1, 'job'), (shown['schema'], shown['name']))
        self.assertEqual([('first', 'shared'), ('second', 'shared')],
                         [(e['owner'], e['kind']) for e in shown['holders']])
        self.assertEqual([('writer', 'exclusive'), ('reader', 'shared')],
                         [(e['owner'], e['kind']) for e in shown['waiters']])
        for e in shown['holders']:
            self.assertLessEqual(e['held_ms'], e['since_ms'])
        self.assertNotIn('held_ms', shown['waiters'][0])
        rows = self.rows('show', 'job')
        self.assertEqual(['PLACE', 'KIND', 'OWNER', 'SINCE', 'TTL', 'TOKEN'], rows[0])
        self.assertEqual(['holds', 'holds', '1', '2'], [row[0] for row in rows[1:]])
        self.assertEqual('first\nsecond\nwriter\nreader\n',
                         self.locks('show', 'job', '-o', 'name').stdout)

    def test_names_are_shown_without_the_prefix_of_the_settings(self):
        self.hold('team/job')
        self.hold('other')
        done = self.locks('ls', '-o', 'name', '--prefix', 'team/')
        self.assertEqual('job\n', done.stdout)
        shown = json.loads(self.locks('show', 'job', '--prefix', 'team/', '-o', 'json').stdout)
        self.assertEqual(('job', 1), (shown['name'], len(shown['holders'])))

    def test_the_killed_are_not_listed(self):
        holder = self.hold('job')
        os.kill(holder.command, signal.SIGKILL)
        holder.signal(signal.SIGKILL)
        wait_until(lambda: self.entries('job') == 0)

    def test_all_pages(self):
        self.locks('ls')
        names = [f'n/{i:04}' for i in range(1_203)]
        live = open(self.folder / 'x.db-live', 'r+b')  # a session that lives
        self.addCleanup(live.close)
        fcntl.lockf(live, fcntl.LOCK_EX, 1, 77)
        with sqlite3.connect(self.folder / 'x.db') as db:
            db.execute("INSERT INTO sessions VALUES(77, 'many', 15, 1 << 60, 'x', 0, '')")
            db.executemany("INSERT INTO claims(id, session, claim, info, since, missing) "
                           "VALUES(?, 77, ?, '', 0, 0)", [(i + 1, i) for i in range(len(names))])
            db.executemany('INSERT INTO entries(name, claim, part, kind, n, turn) '
                           'VALUES(?, ?, 0, 0, 0, 1)', [(n, i + 1) for i, n in enumerate(names)])
        db.close()
        self.assertEqual(names, self.locks('ls', '-o', 'name').stdout.split())
        self.assertEqual(names[300:400], self.locks('ls', 'n/03*', '-o', 'name').stdout.split())
        self.assertEqual('many\n', self.locks('show', 'n/0777', '-o', 'name').stdout)


class Watching(Scene):
    def watch(self, *words):
        process = subprocess.Popen([PROGRAM, 'locks', 'watch', *words, '--locks', self.store],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        def end():
            process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def next_line(self, watching):
        """Not readline: it would wait for ever for what does not come."""
        pipe = watching.stdout.fileno()
        line = b''
        while not line.endswith(b'\n'):
            self.assertTrue(select.select([pipe], [], [], PATIENCE)[0], 'no line came')
            line += os.read(pipe, 1)
        return line.decode()

    def next_change(self, watching):
        return json.loads(self.next_line(watching))

    def test_a_line_a_change(self):
        holder = self.hold('job', '--label', 'one')
        watching = self.watch('-o', 'json', '--every', '20ms')
        first = self.next_change(watching)
        self.assertEqual((1, 'granted', 'job', 'one'),
                         (first['schema'], first['change'], first['name'], first['entry']['owner']))
        self.assertRegex(first['at'], r'\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z')
        waiter = self.start('job', '--label', 'two', '--', 'sleep', '0.2')
        self.assertEqual(('waits', 'two'), self.told(watching))
        self.assertEqual(0, holder.let_go())
        self.assertEqual(('released', 'one'), self.told(watching))
        granted = self.next_change(watching)
        self.assertEqual(('granted', 'two'), (granted['change'], granted['entry']['owner']))
        self.assertGreater(granted['entry']['token'], first['entry']['token'])
        self.assertEqual(0, waiter.end())
        self.assertEqual(('released', 'two'), self.told(watching))
        watching.send_signal(signal.SIGINT)
        self.assertEqual((0, ''), (watching.wait(PATIENCE), watching.stderr.read()))

    def told(self, watching):
        change = self.next_change(watching)
        return change['change'], change['entry']['owner']

    def test_a_change_of_the_named_holder_is_told_at_once(self):
        watching = self.watch('job', '-o', 'json', '--every', '1h')
        wait_until(lambda: scene.has_opened(watching.pid, 'x.db-live'))
        holder = self.hold('job', '--label', 'one')
        self.hold('jobs')
        self.assertEqual(('granted', 'one'), self.told(watching))
        holder.let_go()
        self.assertEqual(('released', 'one'), self.told(watching))

    def test_it_ends_when_nobody_reads(self):
        self.hold('job')
        watching = self.watch()
        self.assertRegex(self.next_line(watching), r'Z  job granted to ".+", token \d+\n\Z')
        watching.stdout.close()
        self.assertEqual(74, watching.wait(PATIENCE))
        self.assertEqual('', watching.stderr.read())
        watching.stdout = open(os.devnull)


    def test_a_signal_that_is_ignored_does_not_end_it(self):
        self.hold('job')
        watching = subprocess.Popen(
            ['sh', '-c', 'trap "" HUP; exec "$@"', 'sh', PROGRAM, 'locks', 'watch', '-o', 'name',
             '--locks', self.store], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watching.communicate)
        self.addCleanup(watching.kill)
        self.assertEqual('job\n', self.next_line(watching))
        watching.send_signal(signal.SIGHUP)
        self.hold('other')
        self.assertEqual('other\n', self.next_line(watching))
        watching.send_signal(signal.SIGTERM)
        self.assertEqual(0, watching.wait(PATIENCE))


class Breaking(Scene):
    def break_it(self, *words):
        return self.locks('break', 'job', '--confirm', 'job', *words)

    def outcomes(self, done):
        self.assertEqual(0, done.returncode, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((1, 'job'), (answer['schema'], answer['name']))
        return [(h['owner'], h['outcome']) for h in answer['holders']]

    def test_its_owner_gives_it_back_and_is_told_who_and_why(self):
        holder = self.hold('job', '--label', 'one')
        done = self.break_it('--reason', 'the host goes down')
        self.assertRegex(done.stdout, r'\Ajob: released by "one" after \d+ \w+\n\Z')
        self.assertIn('asked "one" to give the lock "job" back; waiting for it up to its TTL, '
                      'about 15 s', done.stderr)
        self.assertEqual(76, holder.end())
        self.assertRegex(holder.said, r'given back: \S+@\S+ asked for it back '
                                      r'\("the host goes down"\)')
        self.assertEqual(0, self.entries('job'))

    def test_one_that_does_not_give_it_back_is_deleted_after_its_ttl(self):
        holder = self.hold('job', '--label', 'deaf', '--ttl', '1s', '--on-lost', 'ignore')
        began = boot_time()
        self.assertEqual([('deaf', 'deleted')], self.outcomes(self.break_it('-o', 'json')))
        self.assertGreater(boot_time() - began, 0.5)
        self.assertEqual(0, self.entries('job'))
        holder.let_go()

    def test_one_whose_lease_runs_out_meanwhile(self):
        holder = self.hold('job', '--label', 'stopped', '--ttl', '1s')
        holder.signal(signal.SIGSTOP)
        self.assertEqual([('stopped', 'expired')], self.outcomes(self.break_it('-o', 'json')))
        holder.signal(signal.SIGCONT)
        self.assertEqual(76, holder.end())

    def test_force_deletes_it_at_once(self):
        holder = self.hold('job', '--label', 'one', '--on-lost', 'ignore')
        began = boot_time()
        done = self.break_it('--force')
        self.assertEqual('job: deleted at once: "one" held it and may still work\n', done.stdout)
        self.assertEqual('', done.stderr)
        self.assertLess(boot_time() - began, 5)
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)
        self.assertEqual(76, holder.let_go())

    def test_all_who_share_it(self):
        holders = [self.hold('job', '--shared', '--label', name) for name in ('one', 'two')]
        waiter = self.start('job', '--label', 'next', '--', 'true')
        wait_until(lambda: self.entries('job') == 3)
        self.assertEqual([('one', 'released'), ('two', 'released')],
                         self.outcomes(self.break_it('-o', 'json')))
        self.assertEqual([76, 76], [h.end() for h in holders])
        self.assertEqual(0, waiter.end())

    def test_nobody_holds_it(self):
        done = self.break_it()
        self.assertEqual((0, ''), (done.returncode, done.stdout))
        self.assertRegex(done.stderr, r'\Atrinco: nobody holds the lock "job" in the store .+\n')
        self.assertEqual([], self.outcomes(self.break_it('-o', 'json')))

    def test_interrupted_while_it_waits(self):
        holder = self.hold('job', '--on-lost', 'ignore')
        breaking = subprocess.Popen([PROGRAM, 'locks', 'break', 'job', '--confirm', 'job',
                                     '--reason', 'maintenance', '--locks', self.store],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertIn('asked', breaking.stderr.readline())
        breaking.send_signal(signal.SIGINT)
        out, err = breaking.communicate(timeout=PATIENCE)
        self.assertEqual((130, ''), (breaking.returncode, out))
        self.assertEqual('trinco: interrupted; the lock "job" stays asked back from its holder\n',
                         err)
        self.assertRegex(self.locks('show', 'job').stdout,
                         r'NOTE\n.* asked back by \S+@\S+: maintenance\n')
        shown = json.loads(self.locks('show', 'job', '-o', 'json').stdout)
        self.assertEqual('maintenance', shown['holders'][0]['asked_back']['reason'])
        holder.let_go()

    def test_it_waits_in_peace_when_nobody_reads(self):
        holder = self.hold('job', '--ttl', '2s', '--on-lost', 'ignore')
        nobody, output = os.pipe()
        breaking = subprocess.Popen([PROGRAM, 'locks', 'break', 'job', '--confirm', 'job',
                                     '--locks', self.store], stdout=output,
                                    stderr=subprocess.PIPE, text=True)
        os.close(output)
        os.close(nobody)
        with breaking.stderr as said:
            self.assertIn('asked', said.read())
        _, status, used = os.wait4(breaking.pid, 0)
        breaking.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(74, breaking.returncode)
        self.assertLess(used.ru_utime + used.ru_stime, 0.5, 'it has looked without a pause')
        self.assertEqual(0, self.entries('job'))
        holder.let_go()

    def test_it_must_be_confirmed(self):
        holder = self.hold('job')
        for words, said in (([], 'say --confirm job to go on'),
                            (['--force'], 'say --confirm job to go on'),
                            (['--confirm', 'jib'], '--confirm says "jib", but the name is "job"')):
            done = self.locks('break', 'job', *words)
            self.assertEqual((64, ''), (done.returncode, done.stdout))
            self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
            self.assertIn(said, done.stderr)
        self.assertEqual(1, self.entries('job'))
        self.assertEqual(0, holder.let_go())

    def test_reasons_are_one_line(self):
        for reason in ('two\nlines', 'x' * 201):
            done = self.break_it('--reason', reason)
            self.assertEqual(64, done.returncode)
            self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')

    def at_terminal(self, answer, *words):
        """Exit code and what the terminal shows."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, 'locks', 'break', 'job', *words, '--locks', self.store])
        shown = ''
        answered = False
        while select.select([terminal], [], [], PATIENCE)[0]:
            try:
                shown += os.read(terminal, 4096).decode()
            except OSError:
                break
            if not answered and re.search(r'(\[y/N\]|go on:) \Z', shown):
                os.write(terminal, answer.encode() + b'\n')
                answered = True
        os.close(terminal)
        self.assertTrue(answered, shown)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown

    def test_at_a_terminal_it_asks(self):
        holder = self.hold('job', '--label', 'one')
        code, shown = self.at_terminal('n')
        self.assertEqual(64, code)
        self.assertRegex(shown, r'this takes the lock "job" from "one", held for .+\. '
                                r'Go on\? \[y/N\]')
        self.assertIn('not confirmed; nothing was done', shown)
        self.assertEqual(64, self.at_terminal('')[0])
        self.assertEqual(64, self.at_terminal('y', '--force')[0])
        self.assertEqual(1, self.entries('job'))
        code, shown = self.at_terminal('y')
        self.assertEqual(0, code, shown)
        self.assertIn('released by "one"', shown)
        self.assertEqual(76, holder.end())
        self.hold('job', '--on-lost', 'ignore')
        code, shown = self.at_terminal('job', '--force')
        self.assertEqual(0, code, shown)
        self.assertIn('deleted at once', shown)


if __name__ == '__main__':
    scene.main()
