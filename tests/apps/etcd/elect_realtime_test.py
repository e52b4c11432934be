#!/usr/bin/env python3
"""`trinco elect` on a real etcd, and beside `etcdctl elect`; with TRINCO_ETCD_LONG=1 also all that
it does on every store. Takes the program's path."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'elect'))
from elections import STUBBORN, Common, Elections
from etcd_scene import EtcdScene, cluster, is_alive, main, wait_until


class ElectionsOnEtcd(Elections, EtcdScene):
    def first_lease(self, name):
        """Of who leads, in hexadecimal."""
        said = json.loads(self.etcd.must('get', f'{name}/', '--prefix', '--sort-by=CREATE',
                                         '--order=ASCEND', '--limit=1', '-w', 'json'))
        return f'{said["kvs"][0]["lease"]:x}'

    def ask_back(self, name):
        """By taking its lease away."""
        self.etcd.must('lease', 'revoke', self.first_lease(name))

    def etcdctl_elect(self, name, value=None):
        """A candidate of etcdctl, or an observer; its lines are the key, then the value."""
        words = [cluster.find('etcdctl'), f'--endpoints={self.etcd.nodes[0].address_and_port}',
                 'elect', *([name, value] if value else ['--listen', name])]
        one = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               preexec_fn=cluster.end_with_parent)
        self.addCleanup(one.communicate)
        self.addCleanup(one.kill)
        return one

    def places(self, name):
        return len(self.etcd.keys(f'{name}/'))


@unittest.skipUnless(os.environ.get('TRINCO_ETCD_LONG'), 'takes half a minute: TRINCO_ETCD_LONG=1')
class OnEtcd(Common, ElectionsOnEtcd):
    pass


class BesideEtcdctl(ElectionsOnEtcd):
    @staticmethod
    def two_lines(listening):
        return [listening.stdout.readline().strip() for _ in range(2)]

    def test_in_turn_with_etcdctl_elect_both_ways(self):
        first = self.candidate('chief', '--value', 'ours:1', '--ttl', '2s')
        self.leads(first)
        theirs = self.etcdctl_elect('chief', 'theirs:1')
        wait_until(lambda: self.places('chief') == 2, 'the candidate of etcdctl')
        last = self.stand_behind('chief', '--value', 'ours:2', '--ttl', '2s', ahead=2)
        observer = self.observe('chief')
        self.assertEqual('ours:1', self.next_leader(observer))
        listening = self.etcdctl_elect('chief')
        self.assertEqual(['chief/' + self.first_lease('chief'), 'ours:1'],
                         self.two_lines(listening))
        first.process.stdin.close()
        self.assertEqual(3, first.end())
        self.assertEqual('theirs:1', self.two_lines(theirs)[1])
        self.assertEqual('theirs:1', self.next_leader(observer))
        self.assertEqual('theirs:1', self.two_lines(listening)[1])
        self.assertNotIn('granted', last.said)
        theirs.send_signal(signal.SIGINT)  # it resigns
        self.leads(last)
        self.assertEqual('ours:2', self.next_leader(observer))
        self.assertEqual('ours:2', self.two_lines(listening)[1])
        last.process.stdin.close()
        self.assertEqual(3, last.end())
        self.assertIsNone(self.next_leader(observer))
        # A candidate of etcdctl, and an observer too, leaves its lease behind.
        listening.kill()
        for lease in self.etcd.leases():
            self.etcd.ctl('lease', 'revoke', lease)


class Losses(ElectionsOnEtcd):
    APART = True

    def test_a_paused_leader_is_stopped_and_leads_again(self):
        first = self.candidate('chief', '--ttl', '2s', script=STUBBORN)
        token, command = self.leads(first)
        second = self.stand_behind('chief', '--ttl', '2s', ahead=1)
        first.signal(signal.SIGSTOP)
        later, _ = self.leads(second)
        self.assertFalse(is_alive(command))
        first.signal(signal.SIGCONT)
        wait_until(lambda: 'it stands again' in first.said, 'what it says of that')
        second.process.stdin.close()
        last, _ = self.leads(first)
        self.assertEqual(sorted({token, later, last}), [token, later, last])
        first.signal(signal.SIGKILL)

    def test_a_store_that_is_away_is_waited_for(self):
        node = self.etcd.nodes[0]
        first = self.candidate('chief', '--ttl', '2s')
        token, command = self.leads(first)
        observer = self.observe('chief')
        self.assertTrue(self.next_leader(observer))
        self.etcd.kill(node)
        self.assertEqual('told', first.line())
        wait_until(lambda: 'it stands again' in first.said, 'what it says of that')
        wait_until(lambda: 'goes on trying' in first.said, 'that it waits for the store')
        self.assertEqual('store_lost', json.loads(observer.line())['change'])
        self.assertFalse(is_alive(command))
        self.etcd.start(node)
        later, _ = self.leads(first)
        self.assertGreater(later, token)
        self.assertEqual('store_back', json.loads(observer.line())['change'])
        first.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (first.line(), first.end()))

    def test_who_waits_for_nothing_does_not_wait_for_the_store(self):
        node = self.etcd.nodes[0]
        first = self.candidate('chief', '--ttl', '2s', '--no-wait')
        self.leads(first)
        self.etcd.kill(node)
        self.addCleanup(self.etcd.start, node)
        self.assertEqual('told', first.line())
        self.assertEqual(69, first.end())
        self.assertNotIn('goes on trying', first.said)

    def test_a_leader_that_ended_in_an_outage_is_not_told_after_it(self):
        node = self.etcd.nodes[0]
        first = self.candidate('chief', '--value', 'one', '--ttl', '2s')
        self.leads(first)
        observer = self.observe('chief')
        self.assertEqual('one', self.next_leader(observer))
        self.etcd.kill(node)
        self.assertEqual('store_lost', json.loads(observer.line())['change'])
        first.signal(signal.SIGKILL)
        observer.signal(signal.SIGSTOP)
        self.etcd.start(node)
        wait_until(lambda: self.places('chief') == 0, 'the end of the lease')
        observer.signal(signal.SIGCONT)
        self.assertEqual('store_back', json.loads(observer.line())['change'])
        self.assertIsNone(self.next_leader(observer))
        observer.signal(signal.SIGTERM)
        self.assertEqual(0, observer.end())

    def test_an_operator_takes_the_lead_back(self):
        first = self.candidate('chief', '--value', 'one', '--ttl', '2s')
        token, _ = self.leads(first)
        done = self.locks('break', 'chief', '--force', '--confirm', 'chief')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual('told', first.line())
        later, _ = self.leads(first)
        self.assertGreater(later, token)
        first.signal(signal.SIGTERM)
        self.assertEqual(('told', 0), (first.line(), first.end()))

    def test_a_store_that_is_not_there(self):
        port = cluster.free_ports(1)[0]
        for words in (['--', 'true'], ['--observe']):
            done = self.elect('chief', '--locks', f'etcd://127.0.0.1:{port}', *words)
            self.assertEqual((69, ''), (done.returncode, done.stdout), done.stderr)
            self.assertRegex(done.stderr, r'\Atrinco: [^\n]+\n\Z')
            self.assertIn(f'127.0.0.1:{port}', done.stderr)


if __name__ == '__main__':
    main()
