#!/usr/bin/env python3
"""What docs/consul-facts.md says of Consul when servers begin again, are lost or paused, of rights
and of limits. Needs no program of ours."""

import contextlib
import http.client
import json
import signal
import socket
import time

from facts_scene import NOBODY, Facts, lock, main, verb, wait_until

NO_LEADER = (500, 'No cluster leader')


class Restarted(Facts):
    def test_lock_delays_that_are_over_begin_anew(self):
        """The log is applied again, and with it the ends of sessions."""
        node, = self.consul.nodes
        session = self.consul.create_session(Behavior='delete', LockDelay='10s')
        self.done(lock('r', session))
        self.consul.destroy_session(session)
        other = self.consul.create_session()
        wait_until(lambda: self.txn(lock('r', other))[0] == 200, 'the delay is over')
        self.done(verb('unlock', 'r', Session=other))
        living = self.consul.create_session(Behavior='delete', TTL='5s')
        self.done(lock('l', living))
        time.sleep(2)
        self.consul.kill(node)
        before = time.monotonic()
        self.consul.start(node)
        after = time.monotonic()
        self.assertEqual('failed to lock key "r" due to lock delay', self.refused(lock('r', other)))
        # What was held is held, for two TTLs from now on.
        self.assertEqual(living, self.consul.key('l')['Session'])
        wait_until(lambda: self.txn(lock('r', other))[0] == 200, 'the delay is over again')
        self.assertLess(time.monotonic() - after, 10 + 5)
        self.wait_for_end(living)
        self.assertGreater(time.monotonic() - before, 2 * 5 - 0.1)


class Lost(Facts):
    SERVERS = 3
    APART = True

    def first_answer(self, node, ask):
        """Of a request that is made until it is answered with 200: seconds, and what was said
        before."""
        began, said = time.monotonic(), []
        while time.monotonic() - began < 30:
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = ask(node)
                if answer.status == 200:
                    return time.monotonic() - began, said
                said.append((answer.status, answer.body.strip()))
            time.sleep(0.02)
        raise AssertionError(said)

    def put(self, node):
        return self.consul.ask('PUT', '/v1/kv/w', str(time.monotonic()), at=node, timeout=3)

    def test_a_leader_that_is_killed(self):
        """Sessions and lock-delays go on, those with their whole time."""
        leader = self.consul.leader()
        one, _ = (node for node in self.consul.nodes if node is not leader)
        ended = self.consul.create_session(Behavior='delete', LockDelay='60s', at=one)
        self.done(lock('d', ended))
        self.consul.destroy_session(ended)
        session = self.consul.create_session(TTL='4s', Behavior='delete', at=one)
        self.done(lock('k', session))
        time.sleep(2)
        killed = time.monotonic()
        self.consul.kill(leader)
        took, said = self.first_answer(one, self.put)
        self.assertLess(took, 20)
        for status, what in said:
            self.assertEqual(500, status)
            # The last may have been done, the others were not.
            self.assertRegex(what, '^(rpc error getting client: |'
                                   'Raft leader not found in server lookup mapping|'
                                   'No cluster leader|rpc error making call: )')
        status, told = self.txn(lock('d', self.consul.create_session(at=one)), at=one)
        self.assertEqual((409, 'failed to lock key "d" due to lock delay'), (status, told[0][1]))
        self.assertEqual(session, self.consul.key('k', at=one)['Session'])
        self.wait_for_end(session, at=one)
        # By the time that it had, it would have ended 6 s after the kill.
        self.assertGreater(time.monotonic() - killed, 2 * 4)

    def test_a_leader_that_is_paused(self):
        """What was sent to it is not answered; what is sent anew to the same server, is."""
        leader = self.consul.leader()
        one, _ = (node for node in self.consul.nodes if node is not leader)
        self.consul.pause(leader)
        self.addCleanup(self.consul.go_on, leader)
        with self.assertRaises(OSError):
            self.put(one)
        took, _ = self.first_answer(one, self.put)
        self.assertLess(took, 15)

    def test_without_a_leader(self):
        leader = self.consul.leader()
        self.put(leader)
        session = self.consul.create_session(at=leader)
        for node in self.consul.nodes:
            if node is not leader:
                self.consul.kill(node)
        def said(method, target, body=''):
            answer = self.consul.ask(method, target, body, at=leader)
            return answer.status, answer.body.strip()
        wait_until(lambda: said('GET', '/v1/status/leader') == (200, '""'), 'it steps down')
        body = json.dumps([{'KV': verb('get', 'w')}])
        began = time.monotonic()
        self.assertEqual(NO_LEADER, said('GET', '/v1/kv/w'))
        self.assertGreater(time.monotonic() - began, 6, 'it waits for one for 7 s')
        self.assertEqual(NO_LEADER, said('PUT', '/v1/txn', body))
        self.assertEqual(NO_LEADER, said('PUT', f'/v1/session/renew/{session}'))
        stale = self.consul.ask('GET', '/v1/kv/w?stale', at=leader)
        self.assertEqual((200, 'false'), (stale.status, stale.headers['X-Consul-KnownLeader']))


class Removed(Facts):
    SERVERS = 3
    MORE = {'autopilot': {'cleanup_dead_servers': True}}

    def test_sessions_end_with_the_node_they_were_made_at(self):
        """By default, some time after it died; checks or none."""
        dead = self.consul.leader()
        one, _ = (node for node in self.consul.nodes if node is not dead)
        session = self.consul.create_session(at=dead, TTL='1h', Behavior='delete')
        self.done(lock('k', session))
        self.consul.kill(dead)
        def gone():
            answer = self.consul.ask('GET', f'/v1/session/info/{session}', at=one)
            return answer.status == 200 and not answer.json()
        wait_until(gone, 'the session ends')
        self.assertIsNone(self.consul.key('k', at=one))


class Agents(Facts):
    """Agents that are no servers, of which one is on the machine of who locks."""
    AGENTS = 2

    def lives(self, session):
        return bool(self.consul.must('GET', f'/v1/session/info/{session}'))

    def test_sessions_end_with_an_agent_that_is_told_to_end(self):
        """It leaves, by default. One that dies, or reads its configuration again, does not."""
        for agent, number in zip(self.consul.agents, (signal.SIGTERM, signal.SIGINT)):
            session = self.consul.create_session(at=agent)
            agent.process.send_signal(signal.SIGHUP)
            self.consul.kill(agent)
            self.consul.start(agent)
            self.assertTrue(self.lives(session))
            self.consul.must('PUT', f'/v1/session/renew/{session}', at=agent)
            agent.process.send_signal(number)
            agent.process.wait()
            wait_until(lambda session=session: not self.lives(session), 'its end')


class Alone(Facts):
    """An only server that begins again looks for its agents by its notes, serf/local.snapshot, and
    ends what was made at those that it has not found when it leads."""
    AGENTS = 1
    APART = True

    def setUp(self):
        self.server, = self.consul.nodes
        self.agent, = self.consul.agents
        self.there = self.consul.create_session(at=self.agent, TTL='1h')
        self.here = self.consul.create_session(at=self.server, TTL='1h')
        notes = self.consul.folder / self.server.name / 'serf/local.snapshot'
        def noted():  # notes are written down when there is something new
            self.consul.must('PUT', '/v1/event/fire/x')
            return f'alive: {self.agent.name} ' in notes.read_text()
        wait_until(noted, 'the server notes its agent')
        self.consul.kill(self.server)
        # The agent has given it up, and will look for it again in 30 s.
        wait_until(lambda: self.consul.ask('GET', '/v1/kv/x', at=self.agent).body.strip() ==
                   'No known Consul servers', 'the agent gives the server up')

    def lives(self, session):
        return bool(self.consul.must('GET', f'/v1/session/info/{session}'))

    def test_an_agent_that_it_finds(self):
        self.consul.start(self.server)
        wait_until(lambda: self.consul.ask('PUT', f'/v1/session/renew/{self.there}',
                                           at=self.agent).status == 200, 'the agent is back')
        time.sleep(2)
        self.assertTrue(self.lives(self.there))
        self.assertTrue(self.lives(self.here))

    def test_an_agent_that_does_not_answer_then(self):
        self.consul.pause(self.agent)
        self.addCleanup(self.consul.go_on, self.agent)
        self.consul.start(self.server)
        wait_until(lambda: not self.lives(self.there), 'its end')
        self.assertTrue(self.lives(self.here))


class Rights(Facts):
    TOKEN = 'of-the-manager'

    def token_for(self, rules):
        policy = self.consul.must('PUT', '/v1/acl/policy', json.dumps(
            {'Name': f'p{time.monotonic_ns()}', 'Rules': rules}))
        made = self.consul.must('PUT', '/v1/acl/token', json.dumps(
            {'Policies': [{'ID': policy['ID']}]}))
        return made['SecretID']

    def said_to(self, token, method, target, body=''):
        node, = self.consul.nodes
        connection = http.client.HTTPConnection(node.address, node.http, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, target, body.encode(), {'X-Consul-Token': token})
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()

    def test_of_keys_and_sessions(self):
        ours = self.token_for('key_prefix "ok/" { policy = "write" } '
                              'session_prefix "" { policy = "write" }')
        reader = self.token_for('key_prefix "" { policy = "read" }')
        session = json.loads(self.said_to(ours, 'PUT', '/v1/session/create',
                                          '{"TTL":"60s","NodeChecks":[]}')[1])['ID']
        def txn(token, *operations):
            return self.said_to(token, 'PUT', '/v1/txn',
                                json.dumps([{'KV': one} for one in operations]))
        self.assertEqual(200, txn(ours, lock('ok/a', session))[0])
        for token, one in ((ours, lock('no/a', session)), (reader, lock('ok/a', session)),
                           (reader, verb('check-not-exists', 'ok/b'))):
            status, what = txn(token, one)
            self.assertEqual(409, status)
            self.assertIn("Permission denied: token with AccessorID", what)
            self.assertIn("lacks permission 'key:write' on", what)
        status, what = txn(ours, verb('check-session', 'no/a', Session=session))
        self.assertEqual(409, status)
        self.assertIn("lacks permission 'key:read' on", what)
        # Of what may not be read: nothing, as if there were none.
        self.consul.must('PUT', '/v1/kv/no/a', '1')
        status, what = txn(ours, verb('get', 'no/a'))
        self.assertEqual((200, []), (status, json.loads(what)['Results']))
        self.assertEqual(404, self.said_to(ours, 'GET', '/v1/kv/no/?recurse')[0])
        status, what = self.said_to(ours, 'GET', '/v1/kv/no/a')
        self.assertEqual(403, status)
        self.assertIn("lacks permission 'key:read' on \"no/a\"", what)
        status, what = self.said_to(reader, 'PUT', f'/v1/session/renew/{session}')
        self.assertEqual(403, status)
        self.assertIn("lacks permission 'session:write' on \"n0\"", what)
        self.assertEqual((200, '[]'), self.said_to(reader, 'GET', f'/v1/session/info/{session}'))
        self.assertEqual((403, 'ACL not found'), self.said_to(NOBODY, 'PUT', '/v1/kv/ok/a', '1'))
        self.assertEqual(200, self.said_to(NOBODY, 'GET', '/v1/status/leader')[0])


class Limits(Facts):
    def test_connections_of_one_address(self):
        """Answered before anything was asked."""
        node, = self.consul.nodes
        with contextlib.ExitStack() as all_of_them:
            refused = []
            for _ in range(210):
                one = all_of_them.enter_context(
                    socket.create_connection((node.address, node.http)))
                refused.append(one)
            def answered():
                count = 0
                for one in refused:
                    one.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        count += one.recv(12, socket.MSG_PEEK) == b'HTTP/1.1 429'
                return count
            # One that had ended before may be counted for a moment.
            wait_until(lambda: answered() >= 10, 'those above 200 are refused')
            self.assertLess(answered(), 20)
        wait_until(lambda: self.consul.ask('GET', '/v1/kv/x').status == 404, 'there is room again')


if __name__ == '__main__':
    main(at_a_time=3)
