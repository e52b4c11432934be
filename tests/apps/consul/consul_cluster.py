"""A real Consul for tests of programs: one server or three, each a process with a folder of its
own. Nothing is left when a test ends.

Three servers may have a network each (Networks of etcd's tests): then a server can be cut off from
the others, with the clients that are on its side."""

import base64
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'etcd'))
from cluster import PATIENCE, Networks, NoNetworks, end_with_parent, free_ports, wait_until

__all__ = ['PATIENCE', 'Cluster', 'Networks', 'NoNetworks', 'demand', 'find', 'find_go_client',
           'free_ports', 'wait_until']

LOCK_FLAGS = 0x2ddccbc058a50c18
SEMAPHORE_FLAGS = 0xe0f69a2baa414de0


def _on_path(name):
    cache = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return shutil.which(name) or shutil.which(
        name, path=str(pathlib.Path(cache) / 'trinco/servers/bin'))


def demand(found, what):
    """Where there must be one, which TRINCO_REQUIRE_CONSUL says, there being none is an error and
    no reason to skip a test."""
    if not found and os.environ.get('TRINCO_REQUIRE_CONSUL'):
        raise RuntimeError(f'TRINCO_REQUIRE_CONSUL is set and there is no {what}; `make servers` '
                           'says why')
    return found


def find():
    """The path of Consul: TRINCO_CONSUL_SERVER, else of PATH, else what `make servers` has built;
    None when there is none."""
    return demand(os.environ.get('TRINCO_CONSUL_SERVER') or _on_path('consul'), 'Consul')


def find_go_client():
    return demand(_on_path('consul-interop'), 'consul-interop')


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Node:
    def __init__(self, name, address, ports, inside, server=True):
        self.name = name
        self.server_too = server
        self.address = address
        self.http, self.server, self.gossip = ports
        self.inside = inside
        self.process = None
        self.address_and_port = f'{address}:{self.http}'


class Cluster:
    """`networks`: each server in the one of its name; n0, n1, n2. `more`: members of each agent's
    configuration. `token`: demanded of every request, and may do everything. `agents`: how many
    agents that are no servers there are besides; a0, a1."""
    SCHEME = 'consul'

    def __init__(self, folder, servers=1, networks=None, more=None, token='', ttl_min='1s',
                 agents=0):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.program = find()
        self.more = more or {}
        self.token = token
        self.ttl_min = ttl_min
        # Who is no part of this cluster cannot join it by a port that it happens to know.
        self.gossip_key = base64.b64encode(os.urandom(16)).decode()
        self.nodes, self.agents = [], []
        try:
            self._start_all(servers, networks, agents)
        except AssertionError:
            # Somebody else may have taken a port since it was free: once more, with others.
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            self._start_all(servers, networks, agents)

    def _start_all(self, servers, networks, agents):
        """All run, or none does."""
        names = [f'n{i}' for i in range(servers)]
        ports = free_ports(3 * servers)
        self.nodes = [Node(name, networks.address(name) if networks else '127.0.0.1',
                           ports[3 * i:3 * i + 3], networks.inside[name] if networks else [])
                      for i, name in enumerate(names)]
        self.agents = [Node(f'a{i}', '127.0.0.1', free_ports(3), [], server=False)
                       for i in range(agents)]
        try:
            for node in self.nodes:
                self.begin(node)
            for node in self.nodes:
                self.wait_for(node)
            for node in self.agents:
                self.start(node)
        except BaseException:
            self.end()
            raise

    def configuration(self, node):
        said = {
            'node_name': node.name, 'datacenter': 'dc1', 'bind_addr': node.address,
            'client_addr': f'{node.address} 127.0.0.1' if node.inside else node.address,
            'data_dir': f'{self.folder}/{node.name}',
            'encrypt': self.gossip_key,
            'ports': {'http': node.http, 'https': -1, 'server': node.server,
                      'serf_lan': node.gossip, 'serf_wan': -1, 'dns': -1, 'grpc': -1,
                      'grpc_tls': -1},
            'performance': {'raft_multiplier': 1}, 'disable_update_check': True,
            'connect': {'enabled': False},
            'ui_config': {'enabled': False},
            'gossip_lan': {'gossip_interval': '20ms', 'probe_interval': '200ms',
                           'probe_timeout': '100ms'},
        }
        if node.server_too:
            # By default the node of a dead server is removed, and with it all sessions made there.
            said.update(server=True, bootstrap_expect=len(self.nodes),
                        session_ttl_min=self.ttl_min, autopilot={'cleanup_dead_servers': False})
        if len(self.nodes) > 1 or not node.server_too:
            said['retry_join'] = [f'{n.address}:{n.gossip}' for n in self.nodes]
            said['retry_interval'] = '1s'
        if self.token:
            said['acl'] = {'enabled': True, 'default_policy': 'deny',
                           'tokens': {'initial_management': self.token, 'agent': self.token}}
        return {**said, **self.more}

    def begin(self, node):
        file = self.folder / f'{node.name}.json'
        file.write_text(json.dumps(self.configuration(node)))
        with open(self.folder / f'{node.name}.log', 'ab') as log:
            node.process = subprocess.Popen(
                [*node.inside, self.program, 'agent', f'-config-file={file}'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent)

    def wait_for(self, node):
        """There is a leader, and the server is known to it."""
        ttl = max(10, int(self.ttl_min.removesuffix('s')))

        def answers():
            if node.process.poll() is not None:
                raise AssertionError((self.folder / f'{node.name}.log').read_text()[-2000:])
            try:
                made = self.ask('PUT', '/v1/session/create',
                                f'{{"TTL":"{ttl}s","NodeChecks":[]}}', at=node)
                return made.status == 200 and self.ask(
                    'PUT', '/v1/session/destroy/' + made.json()['ID'], at=node).status == 200
            except (OSError, http.client.HTTPException, subprocess.SubprocessError):
                return False
        wait_until(answers, f'{node.name} answers')

    @property
    def url(self):
        return self.url_of(*self.nodes)

    def url_of(self, *nodes):
        return f'{self.SCHEME}://' + ','.join(node.address_and_port for node in nodes)

    def running(self):
        return [n for n in self.nodes if n.process and n.process.poll() is None]

    def ask(self, method, target, body='', at=None, timeout=PATIENCE):
        """One request, inside the network of the server that is asked."""
        node = at or self.running()[0]
        headers = {'X-Consul-Token': self.token} if self.token else {}
        if node.inside:
            return self._ask_inside(node, method, target, body, headers, timeout)
        connection = http.client.HTTPConnection(node.address, node.http, timeout=timeout)
        try:
            connection.request(method, target, body.encode(), headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    @staticmethod
    def _ask_inside(node, method, target, body, headers, timeout):
        script = ('import http.client, json, sys\n'
                  'at, method, target, body, headers, timeout = json.loads(sys.stdin.read())\n'
                  'c = http.client.HTTPConnection(at, timeout=timeout)\n'
                  'c.request(method, target, body.encode(), headers)\n'
                  'a = c.getresponse()\n'
                  'print(json.dumps([a.status, dict(a.headers), a.read().decode()]))\n')
        said = subprocess.run(
            [*node.inside, sys.executable, '-c', script], capture_output=True, check=True,
            timeout=timeout + 5, text=True,
            input=json.dumps([node.address_and_port, method, target, body, headers, timeout]))
        return Answer(*json.loads(said.stdout))

    def must(self, method, target, body='', **more):
        answer = self.ask(method, target, body, **more)
        if answer.status != 200:
            raise AssertionError(f'{method} {target}: {answer.status} {answer.body}')
        return answer.json()

    def environment(self, node=None):
        """For Consul's own program and client."""
        node = node or self.running()[0]
        own = {name: value for name, value in os.environ.items()
               if not name.startswith('CONSUL_')}
        own['CONSUL_HTTP_ADDR'] = node.address_and_port
        if self.token:
            own['CONSUL_HTTP_TOKEN'] = self.token
        return own

    def leader(self):
        """The server that leads, by the word of those that run; waits for one."""
        def leads():
            for node in self.running():
                try:
                    said = self.ask('GET', '/v1/agent/self', at=node, timeout=1)
                except (OSError, http.client.HTTPException, subprocess.SubprocessError):
                    continue
                if said.status == 200 and said.json()['Stats']['consul']['leader'] == 'true':
                    return node
            return None
        return wait_until(leads, 'a server leads')

    def kill(self, node):
        node.process.kill()
        node.process.wait()

    def start(self, node):
        self.begin(node)
        self.wait_for(node)

    @staticmethod
    def pause(node):
        node.process.send_signal(signal.SIGSTOP)

    @staticmethod
    def go_on(node):
        node.process.send_signal(signal.SIGCONT)

    def snapshot(self, what):
        """`save` or `restore`."""
        subprocess.run([self.program, 'snapshot', what, self.folder / 'snapshot'], check=True,
                       env=self.environment(), capture_output=True, timeout=PATIENCE)

    # What is there.
    def keys(self, prefix='', at=None):
        answer = self.ask('GET', f'/v1/kv/{prefix}?keys&consistent', at=at)
        return answer.json() if answer.status == 200 else []

    def key(self, name, at=None):
        """Its row, with `Value` as text; None when there is none."""
        answer = self.ask('GET', f'/v1/kv/{name}?consistent', at=at)
        if answer.status == 404:
            return None
        row, = answer.json()
        row['Value'] = base64.b64decode(row['Value'] or '').decode()
        return row

    def sessions(self, at=None):
        return self.must('GET', '/v1/session/list?consistent', at=at)

    def create_session(self, at=None, **members):
        """Its id. Without checks: it ends by its TTL alone."""
        said = {'TTL': '60s', 'LockDelay': '0s', 'NodeChecks': [], **members}
        return self.must('PUT', '/v1/session/create', json.dumps(said), at=at)['ID']

    def destroy_session(self, session, at=None):
        self.must('PUT', f'/v1/session/destroy/{session}', at=at)

    def end(self):
        for node in self.nodes + self.agents:
            if node.process is not None and node.process.poll() is None:
                self.kill(node)
