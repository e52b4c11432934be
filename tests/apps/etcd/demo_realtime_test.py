#!/usr/bin/env python3
"""`trinco demo --locks etcd://...` and its act 4: what it claims is so, and nothing is left behind,
however it ends. Takes the program's path. With DEMO_FULL=1 several acts are played in one
demonstration, too."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest
import uuid

from etcd_scene import PATIENCE, PROGRAM, EtcdScene, boot_time, cluster, main, wait_until
from secured import Secured, ask_for_users, make_certificates

WHOLE_TIME = 110
INVOICE_CLAIMS = {'lock_alone_charged_twice', 'once_charged_once', 'run_again_under_its_id',
                  'told_what_was_recorded'}
LEADER_CLAIMS = {'same_holder', 'same_order', 'grants_again'}


class DemoScene(EtcdScene):
    APART = True

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='trinco-demo-test-')
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        self.mark = f'DEMO_TEST_MARK={uuid.uuid4()}'
        name, value = self.mark.split('=')
        # Whatever of etcd's own settings is in the environment has no part in it.
        self.environment.update({name: value, 'TMPDIR': str(self.scratch),
                                 'ETCD_NAME': 'somebody', 'ETCD_DATA_DIR': '/nowhere'})
        self.etcd.must('put', 'theirs', 'untouched')
        self.addCleanup(self.etcd.must, 'del', 'theirs')

    def processes(self):
        found = []
        for folder in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                if self.mark.encode() in (folder / 'environ').read_bytes().split(b'\0'):
                    found.append(int(folder.name))
            except OSError:
                pass
        return found

    def assert_tidy(self):
        """Neither a process nor a file nor a key, at once; leases of the killed end alone."""
        self.assertEqual([], self.processes())
        self.assertEqual([], list(self.scratch.iterdir()))
        self.assertEqual(['theirs'], self.etcd.keys())

    def assert_nothing_left(self):  # of the scene: keys of others stay
        pass

    def begin(self, *words):
        demo = subprocess.Popen([PROGRAM, 'demo', '--json', '--seed', '7', *words],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment, text=True)
        self.addCleanup(demo.stdout.close)
        self.addCleanup(demo.stderr.close)
        self.addCleanup(demo.wait)
        self.addCleanup(demo.kill)
        return demo

    def result(self, *words):
        return self.result_of(self.begin(*words), words)

    def result_of(self, demo, words):
        """The last line of one that ends well."""
        out, err = demo.communicate(timeout=WHOLE_TIME + 10)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual((0, ''), (demo.returncode, err), (words, lines[-1:]))
        for line in lines[:-1]:
            self.assertLessEqual(len(line['text']), 68, line)
        self.assertTrue(lines[-1]['nothing_left'])
        return lines[-1]

    def until(self, event, *words):
        """A demonstration that has just told this event."""
        return self.wait_for(event, self.begin(*words))

    def wait_for(self, event, demo):
        while line := demo.stdout.readline():
            if json.loads(line)['event'] == event:
                return demo
        return self.fail(f'no {event}: {demo.stderr.read()}')

    def assert_invoice(self, invoice):
        self.assertEqual(dict.fromkeys(INVOICE_CLAIMS, True), invoice['claims'])
        self.assertEqual((2, 1), (invoice['lock']['charges'], invoice['once']['charges']))
        self.assertEqual('done', invoice['once']['provider_said'])
        self.assertEqual('not_done', invoice['killed_before_the_charge']['provider_said'])

    def assert_leader(self, leader):
        self.assertEqual(dict.fromkeys(LEADER_CLAIMS, True), leader['claims'])
        everybody = [f'service-{i}' for i in range(1, 5)]
        self.assertEqual([everybody] * 3, [leader[key] for key in
                                           ('queue_before', 'queue_after', 'granted')])
        self.assertEqual(sorted(set(leader['tokens'])), leader['tokens'])
        # A node begins an election after one to two seconds; more than that is a slow machine.
        self.assertGreater(leader['no_grant_ms'], 200)
        self.assertLess(leader['no_grant_ms'], 20_000)


class Demo(DemoScene):
    def test_acts_about_locks_on_the_users_etcd(self):
        """Each act is played by one of its own, at once: neither disturbs another."""
        store = f'{self.store}?prefix=team'
        words = {'tickets': ['--only', 'tickets', '--locks', store],
                 'invoice': ['--only', 'invoice', '--locks', store],
                 'leader': ['--only', 'leader', '--etcd', cluster.find()]}
        demos = {act: self.begin(*words[act]) for act in words}
        shown = {act: self.result_of(demos[act], words[act]) for act in words}
        for act, result in shown.items():
            self.assertEqual([act], [one for one in ('tickets', 'breaker', 'invoice', 'leader')
                                     if result[one]])
        tickets = shown['tickets']['tickets']
        self.assertTrue(all(tickets['claims'].values()), tickets)
        self.assertEqual((100, 0), (tickets['with_lock']['sold'],
                                    tickets['with_lock']['sold_more_than_once']))
        # A server waits for a lease to end.
        self.assertGreater(tickets['with_lock']['killed']['handed_on_ms'], 500)
        invoice = shown['invoice']['invoice']
        self.assert_invoice(invoice)
        self.assertGreater(invoice['once']['retry_ms'], 500)
        self.assert_leader(shown['leader']['leader'])
        self.assert_tidy()

    def test_interrupted_in_the_middle(self):
        leader = ['--only', 'leader', '--etcd', cluster.find()]
        on_store = ['--locks', self.store, '--only']
        def interrupted(event, words):
            demo = self.until(event, *words)
            demo.send_signal(signal.SIGINT)
            _, err = demo.communicate(timeout=PATIENCE)
            return demo.returncode, err

        events = ('killed', 'killed', 'scene', 'leader_killed')
        words = ([*on_store, 'invoice'], [*on_store, 'tickets'], leader, leader)
        with concurrent.futures.ThreadPoolExecutor() as at_once:
            ends = list(at_once.map(interrupted, events, words))
        self.assertEqual([(130, 'trinco: interrupted; nothing is left behind\n')] * 4, ends)
        self.assert_tidy()

    def test_killed_it_takes_its_processes_along_and_the_next_one_tidies_up(self):
        demo = self.until('queue', '--only', 'leader', '--etcd', cluster.find())
        self.assertGreater(len(self.processes()), 10)
        demo.kill()
        wait_until(lambda: not self.processes(), 'the end of its processes')
        demo.wait()
        # What a demonstration of long ago has left in the user's etcd, and one of just now.
        self.etcd.must('put', 'trinco-demo-1600000000-0badcafe/trinco:records/once/invoice/43', 'x')
        young = f'trinco-demo-{int(os.stat(self.scratch).st_mtime)}-0badcafe/a'
        self.etcd.must('put', young, 'x')
        self.addCleanup(self.etcd.must, 'del', young)
        demo = self.until('act', '--locks', self.store, '--only', 'invoice')
        demo.terminate()
        demo.communicate(timeout=PATIENCE)
        self.assertEqual(sorted(['theirs', young]), sorted(self.etcd.keys()))
        self.assertEqual([], list(self.scratch.iterdir()))

    def test_what_cannot_be_played_is_said(self):
        free, = cluster.free_ports(1)
        self.mistake('demo', '--locks', f'etcd://127.0.0.1:{free}', code=69)
        self.mistake('demo', '--locks', f'local:{self.folder}/x.db', code=64)
        self.assertIn('none of them on Consul',
                      self.mistake('demo', '--locks', 'consul://127.0.0.1:8500', code=64))
        self.mistake('demo', '--locks', self.store, '--only', 'breaker', code=64)
        self.mistake('demo', '--locks', self.store, '--only', 'leader', code=64)
        self.mistake('demo', '--etcd', '/etc/passwd', code=64)
        self.mistake('demo', '--etcd', cluster.find(), '--only', 'tickets', code=64)
        self.environment['PATH'] = '/nowhere'
        self.assertIn('--etcd', self.mistake('demo', '--only', 'leader', code=69))
        self.assert_tidy()

    def test_one_that_cannot_begin_leaves_nothing_where_it_tried(self):
        self.environment['TMPDIR'] = '/proc'
        self.assertIn('TMPDIR', self.mistake('demo', '--only', 'tickets', '--locks',
                                             self.store, code=69))
        self.assertEqual((['theirs'], []), (self.etcd.keys(), self.etcd.leases()))

    def test_without_a_program_of_etcd_act_4_is_left_out(self):
        self.environment['PATH'] = '/nowhere'
        demo = self.until('left_out', '--locks', self.store)
        demo.terminate()
        demo.communicate(timeout=PATIENCE)
        self.assert_tidy()

    def test_a_program_that_is_no_etcd_fails_the_act_with_a_sentence(self):
        began = boot_time()
        demo = self.begin('--only', 'leader', '--etcd', '/bin/false')
        out, _ = demo.communicate(timeout=PATIENCE)
        self.assertEqual(1, demo.returncode)
        told = json.loads(out.splitlines()[-1])['leader']['failure']
        self.assertIn('did not find a leader', told)
        self.assertLess(boot_time() - began, 20)
        self.assert_tidy()

    @unittest.skipUnless(os.environ.get('DEMO_FULL'), 'the acts are played apart')
    def test_all_in_one(self):
        shown = self.result('--locks', self.store, '--etcd', cluster.find())
        self.assertIsNone(shown['breaker'])
        for act in ('tickets', 'invoice', 'leader'):
            self.assertTrue(shown[act]['ok'], shown[act])
        self.assert_tidy()

    @unittest.skipUnless(os.environ.get('DEMO_FULL'), 'the acts are played apart')
    def test_all_that_need_no_server_of_the_users(self):
        shown = self.result('--etcd', cluster.find())
        for act in ('tickets', 'breaker', 'invoice', 'leader'):
            self.assertTrue(shown[act]['ok'], shown[act])
        self.assert_tidy()


class Guarded(DemoScene):
    """An etcd with TLS, and users of whom this one may have what begins with team/."""

    @classmethod
    def make_cluster(cls):
        make_certificates(cls.place)
        return Secured(cls.place / 'etcd', cls.place)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ask_for_users(cls.etcd, 'team', 'team/')

    def test_with_a_certificate_a_user_and_a_prefix(self):
        place = self.etcd.nodes[0].address_and_port
        self.environment['PATH'] = '/nowhere'  # no act 4
        store = f'etcds://ann:pw@{place}?ca={self.place}/ca.pem&prefix=team'
        demo = self.begin('--only', 'invoice', '--locks', store)
        self.assert_invoice(self.result_of(demo, store)['invoice'])
        self.assert_tidy()
        wrong = store.replace('ann:pw', 'ann:wrong')
        self.assertNotIn('wrong', self.mistake('demo', '--locks', wrong, code=77))
        stranger = store.replace('prefix=team', 'prefix=bank')
        self.assertIn('may not', self.mistake('demo', '--locks', stranger, code=77))
        self.assert_tidy()


if __name__ == '__main__':
    main()
