"""A real etcd for tests of programs: one node or three, each a process with a folder of its own.
Nothing is left when a test ends.

Three nodes may have a network each (Networks): then a node can be cut off from the others, with the
clients that are on its side. That takes the right to make network namespaces; where there is none
the test says so and skips itself."""

import ctypes
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

PAUSE = threading.Event()
GIVING = threading.Lock()
GIVEN = set()  # ports
PATIENCE = 60
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
BELIEVING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BELIEVING.check_hostname = False
BELIEVING.verify_mode = ssl.CERT_NONE
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                     urllib.request.HTTPSHandler(context=BELIEVING))


def end_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def find(kind='etcd'):
    """The path of etcd, or of etcdctl beside it: TRINCO_ETCD_SERVER, else of PATH, else what `make
    servers` has fetched, as it has others (etcd-3.4); None when there is none."""
    named = os.environ.get('TRINCO_ETCD_SERVER')
    if named and kind == 'etcd':
        return named
    if named and kind == 'etcdctl':
        path = pathlib.Path(named)
        return str(path.with_name('etcdctl' + path.name[4:]))
    cache = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
    return shutil.which(kind) or shutil.which(
        kind, path=str(pathlib.Path(cache) / 'trinco/servers/bin'))


def wait_until(condition, what='the condition', patience=PATIENCE):
    """Polls; the value of the condition once it is true."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        PAUSE.wait(0.01)
    raise AssertionError(f'{what} did not come true in {patience} s')


def is_free(port):
    with socket.socket() as one:
        try:
            one.bind(('127.0.0.1', port))
        except OSError:
            return False
        return True


def free_ports(many):
    """Below those that the system gives to outgoing connections; each is given out once, for
    classes of tests begin their servers at the same time."""
    found = set()
    while len(found) < many:
        port = random.randrange(10_000, 30_000)
        with GIVING:
            if port not in GIVEN and is_free(port):
                GIVEN.add(port)
                found.add(port)
    return sorted(found)


class NoNetworks(Exception):
    """Network namespaces cannot be made here."""


class Networks:
    """A network namespace for each of some parties, on one bridge in a namespace of its own. Ends
    with end(), or with this process."""

    def __init__(self, parties):
        self.keepers = []
        self.inside = {}  # words before a command
        try:
            self._make(parties)
        except (OSError, subprocess.SubprocessError) as error:
            self.end()
            raise NoNetworks(getattr(error, 'stderr', '') or str(error)) from error

    def _keep(self, *words):
        keeper = subprocess.Popen([*words, 'sh', '-c', 'echo kept; exec cat'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        self.keepers.append(keeper)
        if keeper.stdout.readline() != 'kept\n':
            raise OSError(keeper.stderr.read().strip())
        return keeper.pid

    @staticmethod
    def _run(*words):
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE)

    def _make(self, parties):
        as_root = [] if os.geteuid() == 0 else ['--user', '--map-root-user']
        hub = self._keep('unshare', '--net', *as_root)
        into = ['--user', '--preserve-credentials'] if as_root else []
        def enter(pid):
            return ['nsenter', f'--target={pid}', '--net', *into]
        at_hub = enter(hub)
        self._run(*at_hub, 'ip', 'link', 'add', 'hub', 'type', 'bridge', 'stp_state', '0')
        self._run(*at_hub, 'ip', 'link', 'set', 'hub', 'up')
        self.hub = at_hub
        for number, party in enumerate(parties, 1):
            pid = self._keep(*at_hub, 'unshare', '--net')
            self.inside[party] = enter(pid)
            self._run(*at_hub, 'ip', 'link', 'add', f'to-{number}', 'type', 'veth', 'peer', 'name',
                      'net', 'netns', str(pid))
            self._run(*at_hub, 'ip', 'link', 'set', f'to-{number}', 'master', 'hub', 'up')
            for words in (('link', 'set', 'lo', 'up'), ('link', 'set', 'net', 'up'),
                          ('addr', 'add', f'10.99.0.{number}/24', 'dev', 'net')):
                self._run(*self.inside[party], 'ip', *words)
        self.number = {party: number for number, party in enumerate(parties, 1)}

    def address(self, party):
        return f'10.99.0.{self.number[party]}'

    def cut(self, party):
        """Nothing goes in or out; what is inside still reaches each other."""
        self._run(*self.hub, 'ip', 'link', 'set', f'to-{self.number[party]}', 'down')

    def restore(self, party):
        self._run(*self.hub, 'ip', 'link', 'set', f'to-{self.number[party]}', 'up')

    def end(self):
        for keeper in self.keepers:
            keeper.kill()
            keeper.communicate()


class Node:
    def __init__(self, name, address, ports, inside):
        self.name = name
        self.address = address
        self.client, self.peer = ports
        self.inside = inside
        self.process = None
        self.address_and_port = f'{address}:{self.client}'


class Cluster:
    """`networks`: each node in the one of its name; n0, n1, n2. `more`: words for each node.
    `program`: another etcd than find() finds."""
    SCHEME = 'http'

    def __init__(self, folder, nodes=1, networks=None, more=(), program=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.program = program or find()
        self.more = list(more)
        self.networks = networks
        names = [f'n{i}' for i in range(nodes)]
        ports = free_ports(2 * nodes)
        self.nodes = [Node(name, networks.address(name) if networks else '127.0.0.1',
                           ports[2 * i:2 * i + 2], networks.inside[name] if networks else [])
                      for i, name in enumerate(names)]
        for node in self.nodes:
            self.begin(node)
        for node in self.nodes:
            self.wait_for(node)

    def words(self, node):
        alone = len(self.nodes) == 1
        client = f'{self.SCHEME}://{node.address_and_port}'
        peer = f'http://{node.address}:{node.peer}'
        everybody = ','.join(f'{n.name}=http://{n.address}:{n.peer}' for n in self.nodes)
        return [*node.inside, self.program, '--name', node.name,
                f'--data-dir={self.folder}/{node.name}',
                f'--listen-client-urls={client}', f'--advertise-client-urls={client}',
                f'--listen-peer-urls={peer}', f'--initial-advertise-peer-urls={peer}',
                f'--initial-cluster={everybody}',
                f'--heartbeat-interval={20 if alone else 100}',
                f'--election-timeout={200 if alone else 1000}', *self.more]

    def begin(self, node):
        with open(self.folder / f'{node.name}.log', 'ab') as log:
            node.process = subprocess.Popen(self.words(node), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=end_with_parent)

    def wait_for(self, node):
        def answers():
            if node.process.poll() is not None:
                raise AssertionError((self.folder / f'{node.name}.log').read_text()[-2000:])
            if node.inside:
                return self.ctl('get', 'nothing', at=[node]).returncode == 0
            url = f'{self.SCHEME}://{node.address_and_port}/health'
            try:
                with DIRECT.open(url, timeout=5) as answer:
                    return b'"true"' in answer.read()
            except OSError:
                return False
        wait_until(answers, f'{node.name} answers')

    @property
    def url(self):
        return 'etcd://' + ','.join(node.address_and_port for node in self.nodes)

    def url_of(self, *nodes):
        return 'etcd://' + ','.join(node.address_and_port for node in nodes)

    def ctl(self, *words, at=None, timeout='5s'):
        """etcdctl at these nodes (of whom one answers), inside the network of the first."""
        at = at or [n for n in self.nodes if n.process and n.process.poll() is None]
        command = [*at[0].inside, find('etcdctl'), f'--command-timeout={timeout}',
                   '--endpoints=' + ','.join(n.address_and_port for n in at), *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)

    def must(self, *words, **more):
        done = self.ctl(*words, **more)
        if done.returncode != 0:
            raise AssertionError(f'etcdctl {words}: {done.stderr}')
        return done.stdout

    def leader(self):
        """The node that leads, by the word of those that run; waits for one."""
        def leads():
            for node in self.nodes:
                if node.process.poll() is None:
                    said = self.ctl('endpoint', 'status', at=[node]).stdout.split(', ')
                    if len(said) > 4 and said[4] == 'true':
                        return node
            return None
        return wait_until(leads, 'a node leads')

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

    def fill_up(self):
        """Until it takes no more; it wants a small --quota-backend-bytes."""
        address = self.nodes[0].address_and_port
        for i in range(10):
            done = subprocess.run(
                [find('etcdctl'), f'--endpoints={address}', 'put', f'big/{i}'],
                input='x' * 1_000_000, capture_output=True, text=True, timeout=PATIENCE,
                check=False)
            if 'database space exceeded' in done.stderr:
                return
        raise AssertionError(f'it takes 10 MB: {done.stderr}')

    # What is there.
    def keys(self, prefix=''):
        return self.must('get', prefix, '--prefix', '--keys-only').split()

    def leases(self):
        return self.must('lease', 'list').split()[3:]

    def end(self):
        for node in self.nodes:
            if node.process is not None and node.process.poll() is None:
                self.kill(node)
