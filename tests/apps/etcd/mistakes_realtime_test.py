#!/usr/bin/env python3
"""What people get wrong with etcd, and servers that are not what the URL says: each command answers
with one sentence that tells what and what to do, and the code that fits. Takes the program's
path."""

import concurrent.futures

from cluster import free_ports
from etcd_scene import EtcdScene, main
from fleet_mistakes import Names, Strangers
from secured import Secured, ask_for_users, make_certificates


class NamesOnEtcd(Names, EtcdScene):
    def keys(self):
        return self.etcd.keys()


class Ttls(EtcdScene):
    # So the least TTL is 6 s.
    MORE = ('--heartbeat-interval=400', '--election-timeout=4000')

    def test_below_what_any_server_grants(self):
        sentence = self.mistake('lock', 'a', '--ttl', '1s', '--', 'true', code=64)
        self.assertIn('1 s', sentence)
        self.assertIn('2 s', sentence)

    def test_below_what_this_server_grants(self):
        done = self.run_lock('a', '--ttl', '2s', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(done.stderr, r'\Atrinco: [^\n]*\b6 s\b[^\n]*\b2 s\b[^\n]*\n\Z')
        done = self.run_lock('a', '--ttl', '7s', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))


class NoEtcd(Strangers, EtcdScene):
    """Endpoints at which there is no etcd."""
    APART = True

    @classmethod
    def make_cluster(cls):
        return None

    def test_nobody_listens(self):
        at = f'127.0.0.1:{free_ports(1)[0]}'
        self.all_say(f'etcd://{at}', 69, at, 'refused', 'is etcd running there?')

    def test_a_name_that_no_one_has(self):
        self.all_say('etcd://no-such-host.invalid:2379', 69, 'no-such-host.invalid', 'no address',
                     only=['locks'])

    def test_who_answers_is_no_etcd(self):
        web = self.listener(b'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n')
        self.all_say(f'etcd://{web}', 64, web, 'no etcd')
        cases = [(b'SSH-2.0-OpenSSH_9.2p1\r\n', 'not as etcd does'),
                 (b"-ERR unknown command 'PRI'\r\n", 'not as etcd does'),
                 (b'', 'not as etcd does'), (None, 'does not answer')]
        def say(case):
            at = self.listener(case[0])
            return at, case[1], self.mistake('locks', 'ls', 'a', '--locks', f'etcd://{at}', code=69)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for at, part, sentence in pool.map(say, cases):
                self.assertIn(at, sentence)
                self.assertIn(part, sentence)

    def test_a_url_that_is_none(self):
        for url, part in (('etcd://', 'host'), ('etcd://h:99999', '99999'),
                          ('etcd://h?prefixx=a', 'prefixx'), ('etcd://h?prefix=a//b', 'prefix')):
            self.all_say(url, 64, part, only=['lock', 'locks'])


class Login(EtcdScene):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        ask_for_users(cls.etcd, 'shop', 'shop/')

    def assert_nothing_left(self):
        super().assert_nothing_left()
        self.assertEqual([], self.etcd.keys())

    def url_as(self, who):
        return self.etcd.url.replace('etcd://', f'etcd://{who}@')

    def test_nobody_and_a_wrong_password(self):
        at = self.etcd.nodes[0].address_and_port
        sentence = self.mistake('lock', 'shop/a', '--', 'true', code=77)
        self.assertIn(at, sentence)
        self.assertIn('it wants a user and password', sentence)
        for who in ('ann:wrong', 'bob:pw'):
            self.use(self.url_as(who))
            sentence = self.mistake('lock', 'shop/a', '--', 'true', code=77)
            self.assertIn(at, sentence)
            self.assertIn('user or its password', sentence)
            self.assertNotIn('wrong', sentence)
            self.assertNotIn(':pw', sentence)

    def test_a_password_stands_in_no_command_line(self):
        for command in ('lock', 'elect', 'once'):
            sentence = self.mistake(command, 'shop/a', '--locks', self.url_as('ann:geheim'), '--',
                                    'true', code=64)
            self.assertIn('--locks: a password in a command line is seen by every user', sentence)
            self.assertIn('into TRINCO_LOCKS', sentence)
            self.assertNotIn('geheim', sentence)

    def test_rights_that_are_missing(self):
        self.use(self.url_as('ann:pw'))
        done = self.run_lock('shop/a', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        sentence = self.mistake('lock', 'bank/a', '--', 'true', code=77)
        self.assertIn('bank/a', sentence)
        self.assertIn('may not read and write', sentence)
        sentence = self.mistake('once', 'shop/a', '--', 'true', code=77)
        self.assertIn('may not read and write', sentence)


class Certificates(EtcdScene):
    """A server with TLS, whose certificate is for 127.0.0.1 and good.test."""

    @classmethod
    def make_cluster(cls):
        make_certificates(cls.place)
        return Secured(cls.place / 'etcd', cls.place)

    def setUp(self):
        super().setUp()
        self.at = self.etcd.nodes[0].address_and_port
        self.good = f'etcds://{self.at}?ca={self.place}/ca.pem'

    def say(self, url, code, *parts):
        sentence = self.mistake('lock', 'job', '--locks', url, '--', 'true', code=code)
        for part in (self.at, *parts):
            self.assertIn(part, sentence)

    def test_a_certificate_for_another_name(self):
        done = self.run_lock('job', '--locks', self.good, '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        done = self.run_lock('job', '--locks', self.good + '&server_name=good.test', '--', 'true')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.say(self.good + '&server_name=bad.test', 64, 'certificate is for another name',
                 'server_name=')

    def test_an_authority_that_is_not_believed(self):
        self.say(f'etcds://{self.at}?ca={self.place}/other.pem', 77, 'authority', 'ca=')

    def test_without_tls(self):
        sentence = self.mistake('locks', 'ls', 'job', '--locks', f'etcd://{self.at}', code=69)
        self.assertIn('(etcd://, etcds://)', sentence)

    def test_a_file_that_is_not_there(self):
        sentence = self.mistake('lock', 'job', '--locks', f'etcds://{self.at}?ca=/no/such.pem',
                                '--', 'true', code=64)
        self.assertIn('/no/such.pem', sentence)
        self.assertIn('No such file', sentence)


class PlainText(EtcdScene):
    def test_tls_where_there_is_none(self):
        sentence = self.mistake('locks', 'ls', 'job', '--locks', self.url_with_tls(), code=69)
        self.assertIn('(etcd://, etcds://)', sentence)

    def url_with_tls(self):
        return self.etcd.url.replace('etcd://', 'etcds://')


if __name__ == '__main__':
    main()
