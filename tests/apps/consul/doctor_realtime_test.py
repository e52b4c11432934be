#!/usr/bin/env python3
"""`trinco doctor` on real Consul: one server and three, an agent beside them, sound and not. Takes
the program's path."""

import concurrent.futures
import contextlib
import json
import shlex
import socket
import subprocess
import threading

from consul_scene import Cluster, ConsulScene, consul_cluster, main, wait_until
from secured import make_certificates, make_expired
from secured_consul import Secured

TOKEN = '11111111-2222-3333-4444-555555555555'
STRANGER = '99999999-2222-3333-4444-555555555555'


class DoctorScene(ConsulScene):
    def examine(self, *words, code=0, url=None):
        """{check: finding} of the store of locks; of several of one check the worst."""
        if url:
            self.use(url)
        done = self.run_program('doctor', '-o', 'json', '--breakers', f'local:{self.folder}/b.db',
                                *words)
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

    def assert_all_well(self, found, servers=1):
        """But for the time that commits take, which is the machine's, and that nobody stands in
        for a single server."""
        levels = {check: one['level'] for check, one in found.items() if check != 'round-trip'}
        self.assertEqual('warn' if servers == 1 else 'ok', levels.pop('servers'), found)
        self.assertEqual({'ok'}, set(levels.values()), found)


class OneServer(DoctorScene):
    def test_of_a_sound_server_everything_is_told_and_nothing_is_left(self):
        found = self.examine()
        self.assertLessEqual({'connect', 'leader', 'servers', 'datacenter', 'version', 'agent',
                              'connections', 'rights', 'round-trip', 'once', 'ttl', 'lock-delay',
                              'outage', 'tokens', 'use'}, set(found))
        self.assert_all_well(found)
        self.assertEqual(20, found['round-trip']['figures']['commit']['count'])
        self.assertEqual(10, found['round-trip']['figures']['read']['count'])
        self.assertEqual(200, found['connections']['figures']['of_one_host'])
        self.assertEqual(1, found['ttl']['figures']['least_ttl_s'])
        self.assertEqual(5_250, found['outage']['figures']['ttl_15s_survives_ms'])
        self.assertRegex(found['servers']['sentence'],
                         r'\A1 server .*none may be lost: while it is away no lock can be taken')
        self.assertIn('run three', found['servers']['advice'])
        self.assertEqual(1, self.run_program('doctor', '--strict').returncode)
        self.assertIn('"dc1"', found['datacenter']['sentence'])
        self.assertIn('"n0", a server', found['agent']['sentence'])
        self.assertEqual(([], []), (self.consul.keys(), self.consul.sessions()))
        text = self.run_program('doctor').stdout
        self.assertIn('  ok    version      Consul "1.', text)
        self.assertTrue(all(len(line) <= 100 for line in text.splitlines()), text)

    def test_two_examinations_do_not_meet(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for found in pool.map(lambda _: self.examine(), range(4)):
                self.assertEqual('ok', found['rights']['level'], found)

    def test_what_is_not_there_and_what_is_no_consul(self):
        port = consul_cluster.free_ports(1)[0]
        said = self.bad_one('connect', url=f'consul://127.0.0.1:{port}')['sentence']
        self.assertIn(f'127.0.0.1:{port}', said)
        self.assertIn('refused', said)
        with socket.create_server(('127.0.0.1', 0)) as door:
            def answer():
                with contextlib.suppress(OSError):
                    while True:
                        here = door.accept()[0]
                        here.recv(4096)
                        here.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
                        here.close()
            threading.Thread(target=answer, daemon=True).start()
            port = door.getsockname()[1]
            one = self.bad_one('connect', code=64, url=f'consul://127.0.0.1:{port}')
            self.assertIn(f'127.0.0.1:{port}: it answers, but not as Consul does',
                          one['sentence'])
            door.shutdown(socket.SHUT_RDWR)
        self.bad_one('url', code=64, url='consul://127.0.0.1:99999')

    def test_a_prefix_that_no_key_of_consul_has(self):
        self.assertIn("begins with '/'", self.bad_with_prefix('/jobs/')['prefix']['sentence'])

    def bad_with_prefix(self, prefix):
        return self.examine('--prefix', prefix, code=64)

    def test_a_token_stands_in_no_command_line(self):
        url = f'{self.consul.url}?token=geheim'
        for command in (('doctor',), ('lock', 'a', '--', 'true'), ('locks', 'ls')):
            words = [command[0], '--locks', url, *command[1:]]
            if command[0] == 'locks':
                words = ['locks', 'ls', '--locks', url]
            sentence = self.mistake(*words, code=64)
            self.assertIn('--locks: a token in a command line is seen by every user', sentence)
            self.assertIn('token_file=', sentence)
            self.assertIn('CONSUL_HTTP_TOKEN', sentence)
            self.assertIn('TRINCO_LOCKS', sentence)
            self.assertNotIn('geheim', sentence)


class Certificates(DoctorScene):
    """A server with TLS, whose certificate is for 127.0.0.1 and good.test."""

    @classmethod
    def make_cluster(cls):
        make_certificates(cls.place)
        return Secured(cls.place / 'consul', cls.place)

    def test_what_tls_prevents_has_an_advice_of_its_own(self):
        at = f'127.0.0.1:{self.consul.https_port}'
        good = f'consuls://{at}?ca={self.place}/ca.pem'
        self.assertEqual('ok', self.examine(url=good)['tls']['level'])
        plain = self.consul.nodes[0].address_and_port
        for url, code, advice in (
                (f'{good}&server_name=bad.test', 64, 'server_name=NAME'),
                (f'consuls://{at}?ca={self.place}/other.pem', 77, 'give ca=FILE'),
                (f'consuls://{at}?ca=/no/such.pem', 64, 'name a file'),
                (f'consul://{at}', 64, 'write consuls://'),
                (f'consuls://{plain}?ca={self.place}/ca.pem', 64, 'write consul://')):
            with self.subTest(url=url):
                self.assertIn(advice, self.bad_one('connect', code=code, url=url)['advice'])


class Strict(DoctorScene):
    """Whose certificate has expired, and who wants to see one."""
    APART = True

    def test_the_servers_certificate_and_ours(self):
        make_certificates(self.folder)
        expired = make_expired(self.folder)
        for server, more, words, advice in (
                (expired, {}, 'has expired', 'new certificate'),
                ('server.pem', {'verify_incoming': True, 'ca_file': f'{self.folder}/ca.pem'},
                 'who we are', 'give cert=FILE and key=FILE')):
            with self.subTest(words=words):
                consul = Secured(self.folder / words.replace(' ', '-'), self.folder, server, more)
                self.addCleanup(consul.end)
                one = self.bad_one('connect', code=77, url=f'consuls://127.0.0.1:'
                                   f'{consul.https_port}?ca={self.folder}/ca.pem')
                self.assertIn(words, one['sentence'])
                self.assertIn(advice, one['advice'])


class Slow(DoctorScene):
    """Sessions live 30 s at least."""

    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', ttl_min='30s',
                       more={'limits': {'http_max_conns_per_client': 60}})

    def test_a_ttl_that_is_too_short_and_few_connections(self):
        found = self.examine()
        self.assertEqual(('warn', 30), (found['ttl']['level'],
                                        found['ttl']['figures']['least_ttl_s']))
        self.assertIn('ttl = "30s"', found['ttl']['advice'])
        self.assertEqual('ok', found['rights']['level'])
        self.assertEqual('warn', found['connections']['level'])
        self.assertIn('takes 60 of one machine', found['connections']['sentence'])
        # As it says: without --ttl it is refused, with it not.
        self.assertNotEqual(0, self.run_program('lock', 'job', '--', 'true').returncode)
        done = self.run_program('lock', 'job', '--ttl', '30s', '--', 'true')
        self.assertEqual(0, done.returncode, done.stderr)


class Rights(DoctorScene):
    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', token=TOKEN)

    def token(self, *policies):
        said = self.consul.must('PUT', '/v1/acl/token', json.dumps(
            {'Policies': [{'Name': name} for name in policies]}))
        return said['SecretID']

    def follow(self, commands, name):
        """Does what is printed, as the operator."""
        for command in commands:
            consul, *words = shlex.split(command.replace(' NAME ', f' {name} '))
            self.assertEqual('consul', consul)
            done = subprocess.run([self.consul.program, *words], env=self.consul.environment(),
                                  capture_output=True, text=True, check=False)
            self.assertEqual(0, done.returncode, done.stderr)

    def examine_as(self, token, code=0):
        self.environment['CONSUL_HTTP_TOKEN'] = token
        return self.examine(code=code)

    def test_without_rights_and_what_is_printed_is_enough(self):
        self.environment['TRINCO_LOCKS_PREFIX'] = 'jobs/'
        found = self.examine(code=77)
        self.assertEqual('bad', found['rights']['level'])
        self.assertIn('whoever names no token may not make sessions', found['rights']['sentence'])
        self.assertIn('CONSUL_HTTP_TOKEN', found['rights']['advice'])
        self.assertIn('agent:read', found['version']['sentence'])
        found = self.examine_as(STRANGER, code=77)
        self.assertIn('does not know the token', found['token']['sentence'])
        self.assertNotIn('once', found)
        self.assertNotIn(STRANGER, json.dumps(found))
        none = f'{self.folder}/none'
        found = self.examine(code=77, url=f'{self.consul.url}?token_file={none}')
        self.assertIn(none, found['token']['sentence'])
        self.use(self.consul.url)
        nobody = self.token()
        found = self.examine_as(nobody, code=77)
        self.assertEqual(('bad', 'warn'), (found['rights']['level'], found['once']['level']))
        self.assertNotIn(nobody, json.dumps(found))
        # Locks that it may have; but neither the locks of once nor their records.
        self.follow(found['rights']['commands'], 'of-locks')
        some = self.token('of-locks')
        found = self.examine_as(some)
        self.assertEqual(('ok', 'warn'), (found['rights']['level'], found['once']['level']))
        once = ('once', 'daily', '--', 'echo', 'done')
        self.assertEqual(0, self.run_program('lock', 'daily', '--', 'true').returncode)
        self.assertEqual(77, self.run_program(*once).returncode)
        self.follow(found['once']['commands'], 'of-once')
        both = self.token('of-locks', 'of-once')
        found = self.examine_as(both)
        self.assertEqual('ok', found['once']['level'])
        done = self.run_program(*once)
        self.assertEqual((0, 'done\n'), (done.returncode, done.stdout), done.stderr)
        self.assertEqual(['trinco:records/once/jobs/daily'], self.consul.keys())
        # Elsewhere it may nothing.
        self.environment['TRINCO_LOCKS_PREFIX'] = 'bank/'
        one = self.examine_as(both, code=77)['rights']
        self.assertIn('may not write the keys of locks, which begin with "bank/"', one['sentence'])
        self.assertNotIn('session', one['commands'][0])

    def test_who_may_read_the_agent_is_told_more(self):
        found = self.examine_as(TOKEN)
        self.assert_all_well(found)
        self.assertIn('Consul "1.', found['version']['sentence'])
        # Nothing is told of a token that is not known.
        self.environment['CONSUL_HTTP_TOKEN'] = 'with blanks'
        self.assertIn('CONSUL_HTTP_TOKEN', self.bad_one('url', code=64)['sentence'])


class ThreeServers(DoctorScene):
    SERVERS = 3

    @classmethod
    def make_cluster(cls):
        return Cluster(cls.place / 'consul', servers=3, agents=1)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.mend)

    def mend(self):
        for node in self.consul.nodes:
            if node not in self.consul.running():
                self.consul.begin(node)
        for node in self.consul.nodes:
            self.consul.wait_for(node)

    def examined_until(self, is_so, what):
        def found():
            checks = json.loads(self.run_program('doctor', '-o', 'json').stdout)['stores'][1]
            checks = {one['check']: one for one in checks['checks']}
            return checks if is_so(checks) else None
        return wait_until(found, what)

    def test_a_server_that_is_away(self):
        found = self.examined_until(
            lambda found: found['servers'].get('figures', {}).get('may_be_lost') == 1,
            'servers that know each other')
        self.assert_all_well(found, servers=3)
        self.assertIn('3 servers', found['servers']['sentence'])
        self.assertEqual(1, found['servers']['figures']['may_be_lost'])
        away = next(n for n in self.consul.nodes if n is not self.consul.leader())
        self.consul.kill(away)
        found = self.examine()
        self.assertEqual('warn', found['servers']['level'])
        self.assertIn('2 of 3 servers answer', found['servers']['sentence'])
        self.assertIn(': none more may be lost', found['servers']['sentence'])
        # The agent of this machine is not asked for more than the servers tell it.
        self.use(self.consul.url_of(self.consul.agents[0]))
        found = self.examined_until(
            lambda found: found['servers']['level'] == 'warn', 'the word of the servers')
        self.assertIn(f'("{away.name}" is not well, by the word of the servers): none more',
                      found['servers']['sentence'])
        self.assertEqual(0, found['servers']['figures']['may_be_lost'])

    def test_the_majority_is_away(self):
        for node in self.consul.nodes[1:]:
            self.consul.kill(node)
        found = self.examined_until(
            lambda found: found.get('leader', {}).get('level') == 'bad', 'the end of the lead')
        self.assertIn('there is none', found['leader']['sentence'])
        self.assertEqual(69, self.run_program('doctor').returncode)

    def test_an_agent_that_leaves_when_it_is_ended(self):
        self.use(self.consul.url_of(self.consul.agents[0]))
        found = self.examined_until(
            lambda found: found['servers'].get('figures', {}).get('may_be_lost') == 1,
            'servers that know each other')
        self.assertEqual('warn', found['agent']['level'])
        self.assertIn('"a0" leaves when it is ended by TERM', found['agent']['sentence'])
        self.assertIn('leave_on_terminate = false', found['agent']['advice'])
        self.assertIn('raft_multiplier', found['outage']['sentence'])
        del found['agent']
        self.assert_all_well(found, servers=3)


if __name__ == '__main__':
    main()
