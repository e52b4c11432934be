#!/usr/bin/env python3
"""Servers that are not there, not yet, not for a while, or made anew: bounds hold, whoever waits or
holds is told. Takes the program's path."""

import shutil

from cluster import free_ports
from etcd_scene import PROGRAM, EtcdScene, boot_time, main, wait_until

BUSY = 2.5  # seconds that a machine which does other things may add


class NobodyListens(EtcdScene):
    """At any address of the URL."""
    APART = True

    @classmethod
    def make_cluster(cls):
        return None

    def setUp(self):
        super().setUp()
        self.use('etcd://' + ','.join(f'127.0.0.1:{port}' for port in free_ports(2)))

    def refused(self, *words):
        """How long it took to say that the store is not there."""
        began = boot_time()
        sentence = self.mistake(*words, '--', 'true', code=69)
        self.assertRegex(sentence, r'127\.0\.0\.1:\d+: connection refused')
        return boot_time() - began

    def test_who_does_not_wait_ends_at_once(self):
        for words in (['lock', 'job', '--no-wait'], ['lock', 'job', '--wait', '0'],
                      ['elect', 'chief', '--no-wait'], ['once', 'k', '--wait', '0']):
            with self.subTest(words=words):
                self.assertLess(self.refused(*words), BUSY)

    def test_who_waits_ends_at_the_bound(self):
        for words in (['lock', 'job'], ['elect', 'chief'], ['once', 'k']):
            with self.subTest(words=words):
                took = self.refused(*words, '--wait', '1500ms')
                self.assertGreater(took, 1.4)
                self.assertLess(took, 1.5 + BUSY)


class AwayWhileOneWaits(EtcdScene):
    APART = True

    def test_a_store_that_does_not_answer_does_not_hold_back_the_end_of_a_wait(self):
        node, = self.etcd.nodes
        holder = self.hold('job', '--ttl', '60s')
        waiter = self.start('job', '--ttl', '60s', '--wait', '3s', '--', 'true')
        began = boot_time()
        wait_until(lambda: self.entries('job') == 2, 'the waiter in the queue')
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        self.assertEqual(75, waiter.end())
        took = boot_time() - began
        self.assertRegex(waiter.said, r'could not be had within 3 s: the store does not answer')
        self.assertLess(took, 3 + 2.2)
        self.etcd.go_on(node)
        self.assertEqual(0, holder.let_go())

    def test_nor_does_one_that_is_gone(self):
        """Whose lease is lost meanwhile, so that it is tried anew."""
        node, = self.etcd.nodes
        holder = self.hold('job', '--ttl', '2s', '--on-lost', 'ignore')
        waiter = self.start('job', '--ttl', '2s', '--wait', '10s', '--', 'true')
        began = boot_time()
        wait_until(lambda: self.entries('job') == 2, 'the waiter in the queue')
        self.etcd.kill(node)
        self.addCleanup(self.etcd.start, node)
        self.assertEqual(69, waiter.end())
        took = boot_time() - began
        self.assertIn('goes on trying', waiter.said)
        self.assertIn('connection refused', waiter.said.splitlines()[-1])
        self.assertGreater(took, 9.5)
        self.assertLess(took, 10 + BUSY)
        holder.let_go()

    def test_a_server_that_is_just_starting_is_waited_for(self):
        node, = self.etcd.nodes
        self.etcd.kill(node)
        waiter = self.start('job', '--wait', '30s', '--', 'true')
        self.etcd.start(node)
        self.assertEqual(0, waiter.end(), waiter.said)


class AwayWhileOneHolds(EtcdScene):
    def test_a_renewal_that_is_overdue_is_told_and_one_that_succeeds_again(self):
        node, = self.etcd.nodes
        holder = self.hold('job', '--verbose', '--ttl', '20s')
        quiet = self.hold('other', '--ttl', '20s')
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        holder.hear(r'the lock "job": it has not been renewed for \d+(\.\d)? s[^\n]*; it is lost '
                    r'in \d(\.\d)? s unless that succeeds\n')
        self.etcd.go_on(node)
        holder.hear(r'the lock "job": it is renewed again\n')
        self.assertEqual([0, 0], [holder.let_go(), quiet.let_go()])
        self.assertEqual(1, holder.said.count('has not been renewed'))
        self.assertEqual('', quiet.said)

    def test_so_it_is_with_a_key_that_runs(self):
        node, = self.etcd.nodes
        log = self.folder / 'go'
        runner = self.start_command([PROGRAM, 'once', 'k', '--verbose', '--ttl', '20s', '--', 'sh',
                                     '-c', f'while [ ! -e {log} ]; do sleep 0.1; done'])
        runner.hear('runs as process')
        self.etcd.pause(node)
        self.addCleanup(self.etcd.go_on, node)
        runner.hear(r'the key "k": its lock: it has not been renewed for ')
        self.etcd.go_on(node)
        runner.hear(r'the key "k": its lock: it is renewed again\n')
        log.touch()
        self.assertEqual(0, runner.end())


class MadeAnew(EtcdScene):
    """With nothing of what it kept, as the same cluster or as another one."""
    APART = True

    def make_anew(self, *more):
        node, = self.etcd.nodes
        self.etcd.kill(node)
        shutil.rmtree(self.etcd.folder / node.name)
        self.etcd.more = list(more)
        self.etcd.start(node)

    def test_holders_and_waiters_are_told(self):
        for more in ([], ['--initial-cluster-token=another']):
            with self.subTest(more=more):
                holder = self.hold('job', '--ttl', '30s')
                waiter = self.queue_up('job', '--ttl', '30s', '--', 'echo', 'next', ahead=1)
                self.make_anew(*more)
                began = boot_time()
                self.assertEqual(76, holder.end())
                self.assertIn('the lock "job" was lost', holder.said)
                # Long before it could have been lost for want of renewals.
                self.assertLess(boot_time() - began, 13)
                self.assertEqual(('next', 0), (waiter.line(), waiter.end()))
                self.assertIn('it queues anew', waiter.said)


if __name__ == '__main__':
    main()
