#!/usr/bin/env python3
"""`trinco lock`, its permits and `trinco elect` on a real Consul when something happens to its
servers and agents: they begin again, the leader is lost, a snapshot is restored. Takes the
program's path."""

import shutil
import signal

from consul_scene import (LOCK_DELAY, PROGRAM, TTL, Cluster, Lock, boot_time, is_alive, main, pause,
                          wait_until)
from writers import Writers

SAY_TOKEN = ('sh', '-c', 'echo $TRINCO_TOKEN; exec cat')


class Restarts(Writers):
    APART = True

    def test_a_server_that_begins_again(self):
        """Who holds goes on, who waits follows."""
        node, = self.consul.nodes
        holder = self.start('job', '--ttl', '20s', '--', 'sh', '-c', 'echo $$; exec cat')
        command = int(holder.line())
        waiter = self.wait_for_lock('job', '--ttl', '20s', '--', 'echo', 'in')
        self.consul.kill(node)
        pause(1)
        self.consul.start(node)
        self.assertTrue(is_alive(command), holder.said)
        self.assertEqual(0, holder.let_go(), holder.said)
        self.assertEqual('in', waiter.line())
        self.assertEqual(0, waiter.end(), waiter.said)

    def test_a_server_that_stays_away(self):
        """The command has ended before the lease has, by our own clock."""
        node, = self.consul.nodes
        holder = self.begin_writing('job', 'first')
        self.granted(holder)
        self.consul.kill(node)
        gone = boot_time()
        self.addCleanup(self.consul.start, node)
        self.assertEqual(76, holder.end(), holder.said)
        self.assertLess(self.times(holder)[-1] - gone, TTL)


class Agents(Writers):
    """The program asks the agent of its machine, which is no server."""
    APART = True

    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', agents=1)

    def setUp(self):
        super().setUp()
        self.agent, = self.consul.agents
        self.use(self.consul.url_of(self.agent))

    def test_one_that_is_killed_and_begins_again(self):
        """Sessions live on: who holds goes on, who waits follows."""
        holder = self.start('job', '--ttl', '30s', '--', *SAY_TOKEN)
        token = int(holder.line())
        waiter = self.wait_for_lock('job', '--ttl', '30s', '--', *SAY_TOKEN)
        self.consul.kill(self.agent)
        pause(1)
        self.consul.start(self.agent)
        self.assertIsNone(holder.process.poll(), holder.said)
        self.assertEqual(0, holder.let_go(), holder.said)
        self.assertGreater(int(waiter.line()), token)
        self.assertEqual(0, waiter.let_go(), waiter.said)

    def test_one_that_is_told_to_end(self):
        """It leaves, and its sessions end at once, though all is well with who holds: that one
        hears it from the agent as it goes, and nobody follows within the lock-delay."""
        holder = self.begin_writing('job', 'first')
        token = self.granted(holder)
        ended = boot_time()
        self.agent.process.send_signal(signal.SIGTERM)
        self.agent.process.wait()
        self.use(self.consul.url)
        other = self.begin_writing('job', 'second')
        self.assertEqual(76, holder.end(), holder.said)
        self.assertGreater(self.granted(other), token)
        told, begun = self.times(holder)[-1] - ended, self.writes(other) - ended
        print(f'the agent left: who held wrote for {told:.2f} s, the next after {begun:.2f} s')
        self.assertLess(told, begun, 'both wrote at a time')
        self.assertGreater(begun, LOCK_DELAY)
        self.end_of(other)


class LossOfTheLeader(Writers):
    """By doctor's word a TTL of 30 s outlasts at least 11.5 s; those of a test elect in about 4."""
    SERVERS = 3
    APART = True
    TTL = 30

    def begin_all(self):
        """One for a lock, two for permits and one for an election: so many can hold."""
        def run(verb, name, *words):
            one = Lock([PROGRAM, verb, name, '--verbose', '--ttl', f'{self.TTL}s', *words, '--',
                        *SAY_TOKEN], env=self.environment)
            self.addCleanup(one.close)
            return one
        return [run('lock', 'job'), run('lock', 'pool', '-n', '2'), run('lock', 'pool', '-n', '2'),
                run('elect', 'chief')]

    def lose_for_a_while(self, way, back):
        """Longer than who is told of no renewal would believe."""
        leader = self.consul.leader()
        holders = self.begin_all()
        tokens = [one.line() for one in holders]
        waiters = self.begin_all()
        for one in waiters:
            wait_until(lambda one=one: one.said, 'it waits')
        before = self.consul.keys()
        way(leader)
        lost = boot_time()
        others = [node for node in self.consul.nodes if node is not leader]
        body = '[{"KV":{"Verb":"delete","Key":"none"}}]'  # a write that leaves nothing

        def written():
            try:
                return self.consul.ask('PUT', '/v1/txn', body, others[0], timeout=2).status == 200
            except OSError:
                return False
        wait_until(written, 'a write')
        print(f'the leader was lost: {boot_time() - lost:.2f} s without writes')
        wait_until(lambda: boot_time() - lost > self.TTL + 1, 'its time', 2 * self.TTL)
        for one in holders:
            self.assertIsNone(one.process.poll(), one.said)
            self.assertNotRegex(one.said, 'lost|given back')
        for one in waiters:
            self.assertIsNone(one.process.poll(), one.said)
            self.assertNotIn('granted', one.said)
        self.assertEqual(before, self.consul.keys(at=others[0]))
        for one in holders:
            self.assertEqual(0, one.let_go(), one.said)
        for one, token in zip(waiters, tokens):
            later = one.line()
            self.assertTrue(later == token == '' or int(later) > int(token), (token, later))
            self.assertEqual(0, one.let_go(), one.said)
        back(leader)
        for node in self.consul.nodes:
            self.consul.wait_for(node)

    def test_an_election_shorter_than_the_lease_costs_nobody_a_lock(self):
        self.lose_for_a_while(self.consul.kill, self.consul.start)

    def test_nor_does_one_after_a_pause(self):
        self.lose_for_a_while(self.consul.pause, self.consul.go_on)

    def test_without_any_leader_nobody_is_granted_anything(self):
        leader = self.consul.leader()
        others = [node for node in self.consul.nodes if node is not leader]
        for node in others:
            self.consul.kill(node)
        done = self.run_lock('job', '--wait', '3s', '--', 'true')
        self.assertIn(done.returncode, (69, 75), done.stderr)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
        for node in others:
            self.consul.begin(node)
        for node in self.consul.nodes:
            self.consul.wait_for(node)
        done = self.run_lock('job', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)


class Snapshots(Writers):
    """Indexes of keys go back: a blocking query of who waits, or holds, may hear nothing."""
    APART = True
    LOOKS = TTL / 3  # so often who waits, or holds, looks by itself

    def wait_for_turn(self, name, file):
        one = self.begin_writing(name, file)
        wait_until(lambda: one.said, 'it waits')
        return one

    def test_restored_under_holders_and_waiters(self):
        """`new` is taken after the snapshot, by one whose session is not in it; `old` is in it as
        held by one who has given it back since, with the session of one who holds it now."""
        gone = self.hold('new')
        waits = self.wait_for_turn('new', 'waits')
        first = self.hold('old', '--ttl', f'{TTL}s')
        second = self.wait_for_turn('old', 'second')
        waits.signal(signal.SIGSTOP)
        self.consul.must('DELETE', '/v1/kv/new/.lock')
        self.assertEqual(76, gone.end(), gone.said)
        self.consul.snapshot('save')
        holds = self.begin_writing('new', 'holds')
        of_new = self.granted(holds)
        waits.signal(signal.SIGCONT)
        self.assertEqual(0, first.let_go(), first.said)
        of_old = self.granted(second)
        last = self.wait_for_turn('old', 'last')
        pause(1)
        self.assertFalse(waits.written.exists(), 'both wrote at a time')
        self.consul.snapshot('restore')
        restored = boot_time()
        # Who waited for what is free now has nothing to hear.
        self.assertGreater(self.granted(waits), of_new)
        begun = self.writes(waits) - restored
        print(f'a snapshot was restored: who waited wrote after {begun:.2f} s')
        self.assertLess(begun, self.LOOKS + 3)
        for one in holds, second:
            self.assertEqual(76, one.end(), one.said)
            told = self.times(one)[-1] - restored
            print(f'a snapshot was restored: who held wrote for {told:.2f} s')
            self.assertLess(told, TTL)
        # What the one who is gone holds anew ends with its session.
        self.assertGreater(self.granted(last), of_old)
        self.assertLess(self.writes(last) - restored, 2 * TTL + LOCK_DELAY + 5)
        for one in waits, last:
            self.end_of(one)

    def token(self):
        done = self.run_lock('job', '--', 'sh', '-c', 'echo $TRINCO_TOKEN')
        self.assertEqual(0, done.returncode, done.stderr)
        return int(done.stdout)

    def test_restored_to_new_servers_tokens_go_back_and_token_epoch_makes_it_good(self):
        node, = self.consul.nodes
        before = self.token()
        self.consul.snapshot('save')
        for number in range(50):
            self.consul.must('PUT', '/v1/kv/more', str(number))
        after = self.token()
        self.consul.kill(node)
        shutil.rmtree(self.consul.folder / node.name)
        self.consul.start(node)
        self.consul.snapshot('restore')
        back = wait_until(self.token, 'a token')
        self.assertGreater(back, before)
        self.assertLess(back, after, 'tokens did not go back: what is this test of?')
        self.use(self.consul.url + '?token_epoch=1')
        self.assertGreater(self.token(), after)
        self.consul.ask('DELETE', '/v1/kv/more')


if __name__ == '__main__':
    main(at_a_time=5)
