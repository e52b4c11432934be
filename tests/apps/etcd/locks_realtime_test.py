#!/usr/bin/env python3
"""`trinco lock --verbose`, -n and --shared, and `trinco locks ls|show|watch|break`, on a real etcd.
Takes the program's path."""

import json
import os
import re
import signal
import subprocess

from etcd_scene import PATIENCE, PROGRAM, EtcdScene, boot_time, main, pause, wait_until

DURATION = r'\d+(\.\d+)? (ms|s)'


def milliseconds(text):
    number, unit = text.split()
    return float(number) * (1000 if unit == 's' else 1)


class Verbose(EtcdScene):
    def test_it_tells_position_waited_held_and_what_giving_back_took(self):
        holder = self.hold('job', '--verbose', '--label', 'first')
        # Said before its command began, and read by a thread of this test that may come later.
        holder.hear(rf'the lock "job": granted after {DURATION}, token \d+, lease [0-9a-f]+\n')
        second = self.queue_up('job', '--', 'sleep', '0.3', ahead=1)
        third = self.queue_up('job', '--', 'true', ahead=2)
        self.assertIn('1 ahead; held for ', second.said)
        self.assertIn('by "first"', second.said)
        self.assertRegex(third.said, r'2 ahead; held for [^;]+ by "first"; 1 waits\n')
        self.assertEqual(0, holder.let_go())
        self.assertEqual([0, 0], [second.end(), third.end()])
        # Whoever waited behind two has waited for both.
        waited = {}
        for name, lock in (('first', holder), ('second', second), ('third', third)):
            granted = re.search(rf'granted after ({DURATION}), token (\d+)', lock.said)
            ended = re.search(rf'held for ({DURATION}), given back in ({DURATION})\n', lock.said)
            self.assertTrue(granted and ended, lock.said)
            waited[name] = (milliseconds(granted[1]), milliseconds(ended[1]), int(granted[4]))
            self.assertLess(milliseconds(ended[4]), 5_000)
        self.assertGreater(waited['third'][0], waited['second'][1] - 50)
        self.assertGreaterEqual(waited['second'][1], 290)
        self.assertLess(waited['third'][1], waited['third'][0])
        tokens = [waited[name][2] for name in ('first', 'second', 'third')]
        self.assertEqual(sorted(set(tokens)), tokens)

    def test_without_it_nothing_is_said(self):
        done = self.run_lock('job', '--', 'true')
        self.assertEqual((0, '', ''), (done.returncode, done.stdout, done.stderr))


class Kinds(EtcdScene):
    def test_permits(self):
        holders = [self.hold('pool', '-n', '2') for _ in range(2)]
        third = self.start('pool', '-n', '2', '--', 'true')
        wait_until(lambda: self.entries('pool') == 3, 'the third in the queue')
        done = self.run_lock('pool', '-n', '2', '--no-wait', '--', 'true')
        self.assertEqual(75, done.returncode, done.stderr)
        done = self.run_lock('pool', '-n', '3', '--', 'true')
        self.assertEqual(64, done.returncode)
        self.assertIn('is used with -n 2 and not with -n 3', done.stderr)
        self.assertEqual(2, self.listed('pool')['holders'][0]['n'])
        self.assertIsNone(third.process.poll())
        self.assertEqual(0, holders[1].let_go())  # any of them
        self.assertEqual(0, third.end())
        self.assertEqual(0, holders[0].let_go())

    def test_readers_and_writers(self):
        log = self.folder / 'log'
        script = f'echo "$0 in" >> {log}; sleep 0.1; echo "$0 out" >> {log}'
        readers = [self.hold('book', '--shared') for _ in range(2)]
        writer = self.queue_up('book', '--', 'sh', '-c', script, 'writer', ahead=2)
        late = self.queue_up('book', '--shared', '--', 'sh', '-c', script, 'reader', ahead=3)
        self.assertEqual(75, self.run_lock('book', '--no-wait', '--', 'true').returncode)
        self.assertEqual('shared', self.listed('book')['kind'])
        self.assertNotIn('token', self.listed('book')['holders'][0])
        self.assertEqual(0, readers[0].let_go())
        self.assertIsNone(writer.process.poll())
        self.assertIsNone(late.process.poll())  # the writer came before it
        self.assertEqual(0, readers[1].let_go())
        self.assertEqual([0, 0], [writer.end(), late.end()])
        self.assertEqual(['writer in', 'writer out', 'reader in', 'reader out'],
                         log.read_text().splitlines())


class Listing(EtcdScene):
    APART = True

    def test_what_is_listed_and_shown(self):
        holders = [self.hold('a/one', '--label', 'the holder'),
                   self.hold('b', '-n', '3', '--label', 'permit')]
        self.queue_up('a/one', '--label', 'the next', '--', 'true', ahead=1)
        self.queue_up('a/one', '--label', 'reader', '--shared', '--', 'true', ahead=2)
        head, *rows = [line.split() for line in self.locks('ls').stdout.splitlines()]
        self.assertEqual(['NAME', 'HOLDER', 'HELD', 'TTL', 'WAITERS', 'WAIT', 'TOKEN'], head)
        self.assertEqual(['a/one', 'b'], [row[0] for row in rows])
        self.assertEqual('a/one\n', self.locks('ls', 'a/', '-o', 'name').stdout)
        listed = self.listed('a/one')
        self.assertEqual(2, listed['waiters'])
        self.assertGreater(listed['longest_wait_ms'], 0)
        self.assertGreater(listed['holders'][0]['token'], 0)
        shown = json.loads(self.locks('show', 'a/one', '-o', 'json').stdout)
        self.assertEqual(['the holder'], [e['owner'] for e in shown['holders']])
        self.assertEqual([('the next', 'exclusive'), ('reader', 'shared')],
                         [(e['owner'], e['kind']) for e in shown['waiters']])
        for e in shown['holders'] + shown['waiters']:
            self.assertLessEqual(e['ttl_left_ms'], 15_000)
            self.assertGreater(e['ttl_left_ms'], 5_000)
        self.assertEqual('the holder\nthe next\nreader\n',
                         self.locks('show', 'a/one', '-o', 'name').stdout)
        none = self.locks('show', 'c')
        self.assertEqual(1, none.returncode)
        self.assertIn('nobody holds the lock "c"', none.stderr)
        self.assertEqual([0, 0], [one.let_go() for one in holders])

    def test_how_much_it_is_used_is_looked_at(self):
        leader = self.hold('leader')
        first = self.hold('busy')
        users = [self.start('busy', '--', 'sleep', '0.4') for _ in range(5)]
        wait_until(lambda: self.entries('busy') == 6, 'a queue')
        self.assertEqual(0, first.let_go())
        done = self.locks('ls', '--for', '1200ms', '-o', 'json')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        use = {lock['name']: lock['use'] for lock in json.loads(done.stdout)['locks']}
        self.assertEqual((1, 0), (use['leader']['share'], use['leader']['grants']))
        self.assertGreater(use['busy']['share'], 0.5)
        self.assertGreaterEqual(use['busy']['grants'], 1)
        self.assertGreater(use['busy']['p99_wait_ms'], 300)
        self.assertEqual([0] * 6, [leader.let_go(), *(user.end() for user in users)])

    def test_doctor_warns_of_a_lock_that_is_always_taken(self):
        users = [subprocess.Popen(
            ['sh', '-c', 'while "$@"; do :; done', 'sh', PROGRAM, 'lock', 'stock', '--ttl', '2s',
             '--', 'sleep', '0.02'], env=self.environment, stdin=subprocess.DEVNULL,
            start_new_session=True) for _ in range(3)]
        try:
            wait_until(lambda: self.entries('stock') >= 2, 'a queue')
            done = self.run_program('doctor', '-o', 'json')
        finally:
            for user in users:
                os.killpg(user.pid, signal.SIGKILL)
                user.wait()
        found = [c for store in json.loads(done.stdout)['stores'] for c in store['checks']
                 if c['check'] == 'use']
        self.assertEqual(['warn'], [c['level'] for c in found], done.stdout)
        self.assertRegex(found[0]['sentence'],
                         r'the lock "stock" was held \d+ % of the time, handed on \d+ times')
        self.assertTrue(found[0]['advice'])


class Watching(EtcdScene):
    APART = True

    def watch(self, output):
        watching = subprocess.Popen([PROGRAM, 'locks', 'watch', 'job', '-o', output, '--every',
                                     '50ms'], env=self.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        self.addCleanup(watching.communicate)
        self.addCleanup(watching.kill)
        return watching

    def test_a_store_that_stalls_does_not_end_it(self):
        """It is said once, and what changed meanwhile when it is back."""
        node = self.etcd.nodes[0]
        holder = self.hold('job', '--label', 'one', '--ttl', '60s')
        all_watching = [self.watch(output) for output in ('json', 'table', 'name')]
        json_one, table_one, name_one = all_watching
        for one in all_watching:
            self.assertIn('job', one.stdout.readline())
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        away = json.loads(json_one.stdout.readline())
        self.assertEqual((1, 'store_lost', None, None),
                         (away['schema'], away['change'], away['name'], away['entry']))
        self.assertTrue(away['reason'])
        self.assertIn('  the store does not answer: ', table_one.stdout.readline())
        self.assertIn('trinco: the store does not answer: ', name_one.stderr.readline())
        pause(6)  # longer than a listing is waited for at first
        self.assertEqual([None] * 3, [one.poll() for one in all_watching])
        self.etcd.go_on(node)
        back = json.loads(json_one.stdout.readline())
        self.assertEqual(('store_back', None), (back['change'], back['reason']))
        self.assertRegex(table_one.stdout.readline(), r'Z  the store answers again\n\Z')
        self.assertEqual('trinco: the store answers again\n', name_one.stderr.readline())
        self.assertEqual(0, holder.let_go())
        # On a slow machine it may have stalled once more.
        lines = (json.loads(line) for line in json_one.stdout)
        self.assertEqual('released', next(one['change'] for one in lines
                                          if not one['change'].startswith('store_')))
        for one in all_watching:
            one.send_signal(signal.SIGTERM)
            self.assertEqual(0, one.wait(PATIENCE))

    def test_a_look_may_take_as_long_as_any_other_question(self):
        node = self.etcd.nodes[0]
        holder = self.hold('job', '--label', 'one', '--ttl', '60s')
        watching = self.watch('json')
        self.assertEqual('granted', json.loads(watching.stdout.readline())['change'])
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        pause(3.5)
        self.etcd.go_on(node)
        self.assertEqual(0, holder.let_go())
        self.assertEqual('released', json.loads(watching.stdout.readline())['change'])

    def test_a_signal_does_not_wait_for_the_store(self):
        node = self.etcd.nodes[0]
        holder = self.hold('job', '--ttl', '60s')
        election = subprocess.Popen([PROGRAM, 'elect', 'job', '--observe'], env=self.environment,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(election.communicate)
        self.addCleanup(election.kill)
        both = [self.watch('json'), election]
        for one in both:
            one.stdout.readline()
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        pause(3.2)  # both ask whether it is there
        began = boot_time()
        for one in both:
            one.send_signal(signal.SIGTERM)
        self.assertEqual([0, 0], [one.wait(PATIENCE) for one in both])
        self.assertLess(boot_time() - began, 1.2)
        self.etcd.go_on(node)
        self.assertEqual(0, holder.let_go())

    def test_it_does_not_begin_without_the_store(self):
        self.etcd.kill(self.etcd.nodes[0])
        watching = self.watch('json')
        self.assertEqual(69, watching.wait(PATIENCE))
        self.etcd.start(self.etcd.nodes[0])

    def test_a_line_a_change(self):
        holder = self.hold('job', '--label', 'one')
        watching = self.watch('json')

        def told():
            change = json.loads(watching.stdout.readline())
            return change['change'], change['entry']['owner']

        self.assertEqual(('granted', 'one'), told())
        waiter = self.queue_up('job', '--label', 'two', '--', 'sleep', '0.5', ahead=1)
        self.assertEqual(('waits', 'two'), told())
        self.assertEqual(0, holder.let_go())
        self.assertEqual(('released', 'one'), told())
        self.assertEqual(('granted', 'two'), told())
        self.assertEqual(0, waiter.end())
        self.assertEqual(('released', 'two'), told())
        watching.send_signal(signal.SIGINT)
        self.assertEqual((0, ''), (watching.wait(PATIENCE), watching.stderr.read()))


class AwayForLong(EtcdScene):
    def test_who_waits_for_ever_outlasts_its_lease_and_an_outage(self):
        node, = self.etcd.nodes
        holder = self.hold('job', '--ttl', '5s')
        waiter = self.queue_up('job', '--ttl', '5s', '--', 'echo', 'next', ahead=1)
        self.etcd.kill(node)
        waiter.hear('goes on trying')
        self.assertIn('the store does not answer; it waits on', waiter.said)
        self.assertEqual(76, holder.end())
        self.etcd.start(node)
        self.assertEqual(('next', 0), (waiter.line(), waiter.end()))


class BreakingInAFullDatabase(EtcdScene):
    MORE = ('--quota-backend-bytes=4194304',)

    def test_its_holder_cannot_be_asked_and_can_be_deleted(self):
        holder = self.hold('job', '--label', 'first')
        self.etcd.fill_up()
        done = self.locks('break', 'job', '--confirm', 'job')
        self.assertEqual(69, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r'could not ask the holder: [^\n]*database space exceeded'
                                      r'[^\n]*; --force deletes its entry without asking\n\Z')
        self.assertIsNone(holder.process.poll())
        done = self.locks('break', 'job', '--confirm', 'job', '--force')
        self.assertEqual((0, 'job: deleted at once: "first" held it and may still work\n'),
                         (done.returncode, done.stdout))
        self.assertEqual(76, holder.end())
        self.etcd.must('alarm', 'disarm')
        self.etcd.ctl('del', 'big/', '--prefix')


class Breaking(EtcdScene):
    APART = True

    def break_it(self, *words):
        return self.locks('break', 'job', '--confirm', 'job', *words)

    def test_its_owner_gives_it_back_and_is_told_who_and_why(self):
        holder = self.hold('job', '--label', 'one')
        waiter = self.queue_up('job', '--', 'true', ahead=1)
        done = self.break_it('--reason', 'the host goes down')
        self.assertRegex(done.stdout, r'\Ajob: released by "one" after \d+(\.\d+)? \w+\n\Z')
        self.assertEqual(76, holder.end())
        self.assertRegex(holder.said,
                         r'given back: \S+@\S+ asked for it back \("the host goes down"\)')
        self.assertEqual(0, waiter.end())

    def test_first_marked_then_removed(self):
        """One that does not give it back is marked, and deleted when its TTL is over."""
        holder = self.hold('job', '--label', 'deaf', '--ttl', '3s', '--on-lost', 'ignore')
        key, = self.etcd.keys('job/')
        self.assertNotIn('maintenance', self.etcd.must('get', key))
        breaking = subprocess.Popen([PROGRAM, 'locks', 'break', 'job', '--confirm', 'job',
                                     '--reason', 'maintenance', '-o', 'json'],
                                    env=self.environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        self.addCleanup(breaking.communicate)
        self.addCleanup(breaking.kill)
        began = boot_time()
        self.assertIn('asked "deaf" to give the lock "job" back', breaking.stderr.readline())
        wait_until(lambda: 'maintenance' in self.etcd.must('get', key), 'the mark')
        self.assertRegex(self.locks('show', 'job').stdout,
                         r'NOTE\n.* asked back by \S+@\S+: maintenance\n')
        self.assertEqual([key], self.etcd.keys('job/'))  # marked, and still there
        out = breaking.stdout.read()
        self.assertEqual(0, breaking.wait(PATIENCE))
        self.assertEqual([('deaf', 'deleted')],
                         [(h['owner'], h['outcome']) for h in json.loads(out)['holders']])
        self.assertGreater(boot_time() - began, 1)
        self.assertEqual([], self.etcd.keys('job/'))
        self.assertEqual(0, self.run_lock('job', '--no-wait', '--', 'true').returncode)
        holder.let_go()  # it was told to ignore it

    def test_force_deletes_it_at_once(self):
        holder = self.hold('job', '--label', 'one', '--on-lost', 'ignore')
        done = self.break_it('--force')
        self.assertEqual('job: deleted at once: "one" held it and may still work\n', done.stdout)
        self.assertEqual([], self.etcd.keys('job/'))
        self.assertEqual(76, holder.let_go())

    def test_what_goes_by_no_mark_of_ours_is_deleted_by_force_alone(self):
        """The entry of etcdctl: nobody reads a mark there."""
        stranger = subprocess.Popen(
            ['etcdctl', '--endpoints', self.store.removeprefix('etcd://'), 'lock', '--ttl', '2',
             'job'],
            executable=self.etcdctl(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(stranger.communicate)
        self.addCleanup(stranger.kill)
        self.assertTrue(stranger.stdout.readline().startswith('job/'))
        done = self.break_it()
        self.assertNotEqual(0, done.returncode)
        self.assertEqual('', done.stdout)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        self.assertEqual(1, len(self.etcd.keys('job/')))
        self.assertIn('deleted at once', self.break_it('--force').stdout)
        self.assertEqual([], self.etcd.keys('job/'))

    @staticmethod
    def etcdctl():
        from etcd_scene import cluster
        return cluster.find('etcdctl')


if __name__ == '__main__':
    main()
