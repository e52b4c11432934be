#!/usr/bin/env python3
"""`trinco doctor` on real etcd: one and three members, of 3.5 and of 3.4, sound and not. Takes the
program's path."""

import concurrent.futures
import contextlib
import json
import select
import shlex
import socket
import subprocess
import threading
import unittest

from etcd_scene import Cluster, EtcdScene, cluster, main, wait_until
from secured import Secured, ask_for_users, make_certificates


# The names of methods as a head of HTTP/2 has them: in Huffman's code of RFC 7541.
STATUS = bytes.fromhex('9760a924882d9dcb6571afa066a925a87510ac6e48d36a3f')
MEMBER_LIST = bytes.fromhex('9760a924882d9dcb6571af7a8b5092d8c682d3196cce6427')


class Mute:
    """In front of an etcd: a connection is carried both ways until the client says this; from then
    on nothing comes through. A port that takes connections."""

    def __init__(self, port, until):
        self.to = ('127.0.0.1', port)
        self.until = until
        self.door = socket.create_server(('127.0.0.1', 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self):
        with contextlib.suppress(OSError):
            while True:
                client = self.door.accept()[0]
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        with client, socket.create_connection(self.to) as server, contextlib.suppress(OSError):
            while True:
                for one in select.select([client, server], [], [])[0]:
                    said = one.recv(65536)
                    if not said:
                        return
                    if one is client and self.until in said:
                        while client.recv(65536):
                            pass
                        return
                    (server if one is client else client).sendall(said)

    def end(self):
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()


class DoctorScene(EtcdScene):
    def examine(self, *words, code=0, url=None):
        """{check: finding} of the store of locks; of several of one check the worst."""
        done = self.run_program('doctor', '-o', 'json', '--locks', url or self.store,
                                '--breakers', f'local:{self.folder}/b.db', *words)
        self.assertEqual((code, ''), (done.returncode, done.stderr), done.stdout)
        said = json.loads(done.stdout)
        self.assertEqual(1, said['schema'])
        order = ('ok', 'warn', 'bad')
        found = {}
        for one in said['stores'][1]['checks']:
            before = found.get(one['check'])
            if not before or order.index(before['level']) < order.index(one['level']):
                found[one['check']] = one
        return found

    def bad_one(self, check, code=69, url=None):
        one = self.examine(code=code, url=url)[check]
        self.assertEqual('bad', one['level'])
        self.assertTrue(one['advice'])
        return one


class OneMember(DoctorScene):
    APART = True

    def test_of_a_sound_server_everything_is_told_and_nothing_is_left(self):
        found = self.examine()
        self.assertLessEqual({'connect', 'leader', 'members', 'version', 'space', 'rights',
                              'round-trip', 'once', 'ttl', 'outage', 'tokens'}, set(found))
        self.assertEqual({'ok'}, {one['level'] for check, one in found.items()
                                  if check not in ('version', 'members')}, found)
        self.assertEqual('warn', found['members']['level'])
        self.assertRegex(found['members']['sentence'],
                         r'\A1 member .*none may be lost: while it is away no lock can be taken')
        self.assertIn('run three', found['members']['advice'])
        self.assertEqual(20, found['round-trip']['figures']['commit']['count'])
        self.assertGreater(found['space']['figures']['bytes_in_use'], 0)
        self.assertEqual(5_250, found['outage']['figures']['ttl_15s_survives_ms'])
        # Of 3.5.16, say; a later one has none of them.
        if found['version']['level'] == 'warn':
            self.assertIn('etcd#20616', found['version']['sentence'])
        self.assertEqual(1, self.run_program('doctor', '--strict').returncode)
        self.assertEqual([], self.etcd.keys())
        text = self.run_program('doctor').stdout
        self.assertIn('  ok    leader       "n0", term ', text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)

    def test_two_at_a_time_would_not_meet(self):
        for _ in range(2):
            self.examine()
        watching = subprocess.Popen(
            [cluster.find('etcdctl'), f'--endpoints={self.etcd.nodes[0].address_and_port}', 'watch',
             '--prefix', 'trinco:records/', '--rev=1'], stdout=subprocess.PIPE, text=True)
        self.addCleanup(watching.communicate)
        self.addCleanup(watching.kill)
        written = []
        while len(written) < 2:
            if watching.stdout.readline() == 'PUT\n':
                written.append(watching.stdout.readline())
        self.assertEqual(2, len(set(written)), written)
        self.assertEqual([], self.etcd.keys())

    def test_what_is_not_there_and_what_is_no_etcd(self):
        port = cluster.free_ports(1)[0]
        said = self.bad_one('connect', url=f'etcd://127.0.0.1:{port}')['sentence']
        self.assertIn(f'127.0.0.1:{port}', said)
        self.assertIn('refused', said)
        with socket.create_server(('127.0.0.1', 0)) as door:
            def answer():
                with contextlib.suppress(OSError):
                    while True:
                        here = door.accept()[0]
                        here.sendall(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
                        here.close()
            threading.Thread(target=answer, daemon=True).start()
            port = door.getsockname()[1]
            done = self.run_program('doctor', '-o', 'json', '--locks', f'etcd://127.0.0.1:{port}')
            self.assertIn(done.returncode, (64, 69))
            checks = json.loads(done.stdout)['stores'][1]['checks']
            self.assertEqual(('connect', 'bad'), (checks[0]['check'], checks[0]['level']))
            self.assertIn(f'127.0.0.1:{port}', checks[0]['sentence'])
            door.shutdown(socket.SHUT_RDWR)
        self.bad_one('url', code=64, url='etcd://127.0.0.1:99999')

    def test_who_does_not_answer_what_was_asked_is_not_well(self):
        """Nothing of it, or not who the members are: nothing was found to be bad, and nothing was
        found out."""
        def examined(until):
            mute = Mute(self.etcd.nodes[0].client, until)
            self.addCleanup(mute.end)
            return self.examine(code=69, url=f'etcd://127.0.0.1:{mute.port}')
        with concurrent.futures.ThreadPoolExecutor() as pool:
            silent, secretive = pool.map(examined, (STATUS, MEMBER_LIST))
        self.assertEqual('bad', silent['connect']['level'])
        self.assertEqual('ok', secretive['connect']['level'])
        self.assertEqual('bad', secretive['members']['level'])
        self.assertIn('cannot be asked for', secretive['members']['sentence'])

    def test_a_url_of_two_clusters(self):
        other = Cluster(self.folder / 'other')
        self.addCleanup(other.end)
        both = self.etcd.url + ',' + other.url.removeprefix('etcd://')
        one = self.bad_one('members', code=64, url=both)
        self.assertIn('members of 2 clusters', one['sentence'])
        for node in (self.etcd.nodes[0], other.nodes[0]):
            self.assertIn(node.address_and_port, one['sentence'])
        twice = self.etcd.url + ',' + self.etcd.url.removeprefix('etcd://').replace('127.0.0.1',
                                                                                    'localhost')
        self.assertIn('2 places of the URL are 1 member',
                      self.examine(url=twice)['members']['sentence'])


class Certificates(DoctorScene):
    """A server with TLS, whose certificate is for 127.0.0.1 and good.test."""

    @classmethod
    def make_cluster(cls):
        make_certificates(cls.place)
        return Secured(cls.place / 'etcd', cls.place)

    def test_what_tls_prevents_has_an_advice_of_its_own(self):
        at = self.etcd.nodes[0].address_and_port
        good = f'etcds://{at}?ca={self.place}/ca.pem'
        self.assertEqual('ok', self.examine(url=good)['tls']['level'])
        for url, code, advice in (
                (f'{good}&server_name=bad.test', 64, 'server_name=NAME'),
                (f'etcds://{at}?ca={self.place}/other.pem', 77, 'give ca=FILE'),
                (f'etcds://{at}?ca=/no/such.pem', 64, 'name a file'),
                (f'etcd://{at}', 69, 'write etcds://')):
            with self.subTest(url=url):
                self.assertIn(advice, self.bad_one('connect', code=code, url=url)['advice'])


class Full(DoctorScene):
    MORE = ('--quota-backend-bytes=4194304',)

    def test_a_full_database(self):
        self.etcd.fill_up()
        one = self.bad_one('space')
        self.assertIn('NOSPACE', one['sentence'])
        self.assertIn('alarm disarm', one['commands'][-1])
        self.etcd.must('alarm', 'disarm')
        self.etcd.ctl('del', 'big/', '--prefix')


class Rights(DoctorScene):
    def test_a_user_without_rights_and_none_at_all(self):
        etcd = self.etcd
        ask_for_users(etcd, 'jobs', 'jobs/')
        host = etcd.nodes[0].address_and_port
        self.assertIn('demands a user', self.bad_one('login', code=77)['sentence'])
        ann = f'etcd://ann:pw@{host}'
        found = self.bad_with(ann)
        self.assertIn('the user "ann" may not write', found['rights']['sentence'])
        found = self.bad_with(f'etcd://ann:wrong@{host}')
        self.assertIn('"ann"', found['login']['sentence'])
        self.assertNotIn('wrong', json.dumps(found).replace('is wrong', ''))
        # Locks that it may have; but neither the locks of once nor their records.
        self.environment['TRINCO_LOCKS_PREFIX'] = 'jobs/'
        once = ('once', 'daily', '--', 'echo', 'done')
        self.mistake_of(ann, *once)
        found = self.examine_with(ann, code=0)
        self.assertEqual(('ok', 'warn'), (found['rights']['level'], found['once']['level']))
        self.assertEqual('ok', found['login']['level'])
        self.assertEqual(2, len(found['once']['commands']), found['once'])
        self.follow(found['once']['commands'][0])
        self.mistake_of(ann, *once)
        found = self.examine_with(ann, code=0)
        self.assertEqual('warn', found['once']['level'])
        self.assertEqual(1, len(found['once']['commands']), found['once'])
        self.follow(found['once']['commands'][0])
        self.assertEqual('ok', self.examine_with(ann, code=0)['once']['level'])
        done = self.run_program(*once)
        self.assertEqual((0, 'done\n'), (done.returncode, done.stdout), done.stderr)
        self.assertEqual(['trinco:records/once/jobs/daily'], etcd.keys())

    def follow(self, command):
        """Does what is printed, as root."""
        etcdctl, *words = shlex.split(command.replace(' ROLE ', ' jobs '))
        self.assertEqual('etcdctl', etcdctl)
        self.etcd.must(*words)

    def mistake_of(self, url, *words):
        self.use(url)
        self.mistake(*words, code=77)

    def bad_with(self, url):
        return self.examine_with(url, code=77)

    def examine_with(self, url, code):
        """A password stands in no command line."""
        self.use(url)
        done = self.run_program('doctor', '-o', 'json', '--breakers', f'local:{self.folder}/b.db')
        self.assertEqual((code, ''), (done.returncode, done.stderr), done.stdout)
        return {one['check']: one for one in json.loads(done.stdout)['stores'][1]['checks']}


class ThreeMembers(DoctorScene):
    NODES = 3
    APART = True

    def test_a_member_that_is_away(self):
        found = self.examine()
        self.assertIn('3 members', found['members']['sentence'])
        self.assertEqual(1, found['members']['figures']['may_be_lost'])
        self.assertEqual('ok', found['members']['level'])
        found = self.examine(url=self.etcd.url_of(self.etcd.nodes[0]))
        self.assertEqual('warn', found['members']['level'])
        self.assertIn('names 1 of them', found['members']['sentence'])
        away = self.etcd.nodes[2]
        self.etcd.kill(away)
        self.etcd.leader()

        def all_follow():
            found = self.examine()
            return found if found['leader']['level'] == 'ok' else None
        found = wait_until(all_follow, 'a leader whom both follow')
        self.assertEqual('warn', found['connect']['level'])
        self.assertIn(away.address_and_port, found['connect']['sentence'])
        self.assertEqual('warn', found['members']['level'])
        self.assertIn('2 of 3 members answer: none more may be lost', found['members']['sentence'])
        self.assertEqual(0, found['members']['figures']['may_be_lost'])

    def test_the_majority_is_away(self):
        away = self.etcd.nodes[1:]
        for node in away:
            self.etcd.kill(node)

        def is_leaderless():
            found = self.any_examination()
            return found if 'leader' in found and found['leader']['level'] == 'bad' else None
        found = wait_until(is_leaderless, 'the end of the lead')
        self.assertIn('there is none', found['leader']['sentence'])
        for node in away:
            self.etcd.begin(node)
        for node in away:
            self.etcd.wait_for(node)

    def any_examination(self):
        done = self.run_program('doctor', '-o', 'json')
        return {one['check']: one for one in json.loads(done.stdout)['stores'][1]['checks']}


@unittest.skipUnless(cluster.find('etcd-3.4'), 'there is no etcd 3.4; try `make servers`')
class Old(DoctorScene):
    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'etcd', program=cluster.find('etcd-3.4'))

    def test_what_is_known_of_it_is_said(self):
        one = self.examine()['version']
        self.assertEqual('warn', one['level'])
        for what in ('etcd#15247', 'etcd#20616', 'etcd#19179', 'waiter whose lease has ended'):
            self.assertIn(what, one['sentence'])


if __name__ == '__main__':
    main()
