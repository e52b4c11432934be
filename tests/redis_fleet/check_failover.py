"""A fail-over by Sentinels, and slots of a cluster that move from node to node, under load: no
error reaches a caller, decisions take no longer, what is open stays open and what is closed closed;
also when the replica that takes over has missed that it was opened.

Planted: `nobody_takes_over`, a primary that dies when there is nobody else, and
`nobody_remembers`, where those who know what the replica misses die with the primary.
"""

import concurrent.futures
import time

import checkers
import records
from fleet import QUICK, Scene, all_in, events, now, reports, slow_decisions, tell, wait_for
from servers import ServerFleet

OPTIONS = dict(QUICK, open_for_ms=60000, open_max_ms=60000, window_ms=10000, live_for_ms=10000,
               minimum_calls=50, degraded_after_ms=1000)
RATE = 300
SLOT_MOVES = 3
UNTOLD = 0.2  # s of outcomes that the replica may not have when its primary dies
STEP = 0.1  # s between the steps of a move


class Trial:
    def __init__(self, scene, servers, name):
        self.scene, self.servers, self.name = scene, servers, name
        self.wrong = []
        self.calls = self.settled_of_ill = self.began = 0
        self.start()

    def start(self):
        url = self.servers.url
        self.fleet = self.scene.start([[('a', 'va', url), ('b', 'vb', url)], [('c', 'vc', url)]],
                                      OPTIONS, ['well', 'ill'], outside=False)
        tell(self.fleet, 'load * * inside %d 0.02' % RATE)
        wait_for(lambda: all(r['live'] == 3 for r in reports(self.fleet)), 10, 'they are heard')

    def open_ill(self):
        tell(self.fleet, 'load * ill inside %d 1' % RATE)
        wait_for(lambda: all_in(self.fleet, 'ill', 'open', 'fleet'), 10, 'the ill one opens')
        tell(self.fleet, 'load * ill inside %d 0' % RATE)
        time.sleep(0.3)
        self.settled_of_ill = self.settled('ill')
        self.began = now()
        return self

    def settled(self, *breakers):
        """Outcomes since the beginning, of all calls that were admitted."""
        return sum(r['settled'] for r in reports(self.fleet)
                   if not breakers or r['breaker'] in breakers)

    def judge(self, allowed_loss, is_moved=False):
        found = reports(self.fleet)
        self.calls = sum(r['cached_count'] for r in found)
        redirections = sum(r['redirections'] for r in found if r['breaker'] == 'ill')
        p99 = max(r['cached_p99_us'] for r in found)
        self.wrong += slow_decisions(found)
        for r in found:
            is_well = r['breaker'] == 'well'
            if r['state'] != ('closed' if is_well else 'open') or r['degraded']:
                self.wrong.append('%s: %s' % (r['instance'], r))
        admitted = self.settled('ill') - self.settled_of_ill
        if admitted:
            self.wrong.append('ill admitted %d calls' % admitted)
        changes = events(self.fleet, kind='state_changed', since=self.began)
        if changes:
            self.wrong.append('%d changes of state: %s' % (len(changes), changes[0]))
        lost = len({e['instance'] for e in events(self.fleet, kind='store_lost', since=self.began)})
        if is_moved and not redirections:
            self.wrong.append('nobody was told that a slot had moved')
        rows = {name: self.scene.inspect(name, self.servers.url) for name in ('well', 'ill')}
        if rows['well'].get('state') != 'closed' or rows['ill'].get('state') != 'open':
            self.wrong.append('the record says %s' % rows)
        says = '%s: %d decisions in at most %d us (99 %%), %d instances told that it was lost' % (
            self.name, self.calls, p99, lost)
        if is_moved:
            says += '; %d redirections' % redirections
        says += self.compare_counts(allowed_loss)
        return checkers.Verdict('go on', says, self.calls, 100, self.wrong)

    def compare_counts(self, allowed_loss):
        tell(self.fleet, 'load * * inside 0 0')
        time.sleep(0.1)
        given = sum(r['settled'] for r in reports(self.fleet))

        def counted():
            rows = [self.scene.inspect(name, self.servers.url) for name in ('well', 'ill')]
            return sum(row.get('success', 0) + row.get('failure', 0) for row in rows)
        end = time.monotonic() + 3  # after failures instances speak less often for a while
        while counted() < given and time.monotonic() < end:
            time.sleep(0.1)
        found = counted()
        if not given - allowed_loss <= found <= given:
            self.wrong.append('%d outcomes were given, %d counted' % (given, found))
        return '; %d outcomes were given, %d counted' % (given, found)


def same_totals(servers):
    """Whether the replica has what its primary has, now."""
    found = []
    for name in ('server0', 'server1'):
        client = servers.client(name)
        found.append(client.call('HGET', 'trinco:1:default:{well}', 'totals'))
        client.close()
    return found[0] is not None and found[0] == found[1]


def is_primary(servers, name):
    try:
        client = servers.client(name)
    except OSError:
        return False  # it is not there
    try:
        role = client.call('ROLE')[0]
    except ConnectionError:
        return False  # Sentinels cut the connections of who changes its role
    finally:
        client.close()
    return role in (b'master', 'master')


def named_by(servers, sentinel):
    client = servers.client('sentinel%d' % sentinel)
    found = client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'trinco-test')
    client.close()
    return int(found[1])


def follow_the_replica(servers, fleet):
    """Its primary has died."""
    # It is back, and empty, while Sentinels still name it: nobody may follow it any more. Not
    # earlier, or the replica would take over that there is nothing.
    wait_for(lambda: is_primary(servers, 'server1'), 20, 'the replica takes over')
    servers.do('start', 'server0')
    wait_for(lambda: all(named_by(servers, n) == servers.port('server1') for n in range(3)), 20,
             'the Sentinels name the replica')
    wait_for(lambda: not any(r['degraded'] for r in reports(fleet)), 20, 'all have found it')
    time.sleep(1.5)


def with_sentinels(child, seed, plant):
    """What the replica has not got yet is lost with the primary: the counts of a moment, but no
    state."""
    servers = ServerFleet('sentinel')
    try:
        with Scene(child, seed, server=False) as scene:
            trial = Trial(scene, servers, 'fail-over').open_ill()
            wait_for(lambda: same_totals(servers), 20, 'the replica follows its primary')
            if plant == 'nobody_takes_over':
                servers.do('kill', 'server1')
                servers.do('kill', 'server0')
                time.sleep(3 * OPTIONS['degraded_after_ms'] / 1000)
            else:
                servers.do('kill', 'server0')
                follow_the_replica(servers, trial.fleet)
            return trial.judge(allowed_loss=3 * RATE * UNTOLD)
    finally:
        servers.close()


def cut_off_replica(servers):
    """It stays as it is: its primary does not let it in any more. (A Sentinel passes over one that
    has not heard its primary for ten times the time after which that one is taken for dead.)"""
    for name, words in (('server1', ('CONFIG', 'SET', 'masterauth', 'wrong')),
                        ('server0', ('CLIENT', 'KILL', 'TYPE', 'replica'))):
        client = servers.client(name)
        client.call(*words)
        client.close()


def known_to_replica(servers):
    client = servers.client('server1')
    try:
        return records.numbers(client, 'ill')
    finally:
        client.close()


def with_a_replica_behind(child, seed, plant):
    """The replica has never heard that the ill one opened: the instances bring it along."""
    servers = ServerFleet('sentinel')
    try:
        with Scene(child, seed, server=False) as scene:
            trial = Trial(scene, servers, 'fail-over to a replica that misses an opening')
            wait_for(lambda: same_totals(servers), 20, 'the replica follows its primary')
            cut_off_replica(servers)
            known = trial.settled()
            trial.open_ill()
            lost = trial.settled() - known
            behind = known_to_replica(servers)
            if behind is None or behind['state'] != records.CLOSED or behind['era'] != 0:
                trial.wrong.append('the replica is not behind: %s' % behind)
            servers.do('kill', 'server0')
            if plant:
                for p in trial.fleet:
                    p.kill()
                wait_for(lambda: is_primary(servers, 'server1'), 20, 'the replica takes over')
                trial.start()
            follow_the_replica(servers, trial.fleet)
            return trial.judge(allowed_loss=lost + 3 * RATE * 10 * UNTOLD)
    finally:
        servers.close()


def move(servers, slot, source, target):
    """As re-sharding does, key by key, so that scripts meet half-moved slots."""
    clients = {name: servers.client(name) for name in ('node0', 'node1', 'node2')}
    ids = {name: c.call('CLUSTER', 'MYID').decode() for name, c in clients.items()}
    clients[target].call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[source])
    clients[source].call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[target])
    time.sleep(STEP)
    for key in clients[source].call('CLUSTER', 'GETKEYSINSLOT', slot, 100):
        clients[source].call('MIGRATE', '127.0.0.1', servers.port(target), key, 0, 5000)
        time.sleep(STEP / 4)
    time.sleep(STEP)
    for name in (target, source) + tuple(set(ids) - {source, target}):
        clients[name].call('CLUSTER', 'SETSLOT', slot, 'NODE', ids[target])
    for c in clients.values():
        c.close()


def owner(servers, slot):
    client = servers.client('node0')
    for first, last, primary, *_ in client.call('CLUSTER', 'SLOTS'):
        if first <= slot <= last:
            client.close()
            return next(n for n in ('node0', 'node1', 'node2') if servers.port(n) == primary[1])
    raise AssertionError('nobody has slot %d' % slot)


def leave_unserved(servers, trial, slot):
    """A slot that nobody needs, and so the whole cluster refuses to serve anybody."""
    nodes = {name: servers.client(name) for name in ('node0', 'node1', 'node2')}
    had_it = owner(servers, slot)
    for client in nodes.values():
        client.call('CLUSTER', 'DELSLOTS', slot)

    def everybody_knows():
        found = reports(trial.fleet)
        for r in found:
            if r['state'] != ('closed' if r['breaker'] == 'well' else 'open'):
                trial.wrong.append('%s is %s while the cluster is down' % (r['breaker'], r))
        trial.wrong += slow_decisions(found)
        return trial.wrong or all('CLUSTERDOWN' in r['trouble'] for r in found)
    wait_for(everybody_knows, 20, 'all are told that the cluster is down')
    nodes[had_it].call('CLUSTER', 'ADDSLOTS', slot)
    wait_for(lambda: not any(r['degraded'] or r['trouble'] for r in reports(trial.fleet)), 20,
             'all are served again')
    for client in nodes.values():
        client.close()


def with_cluster(child, seed):
    servers = ServerFleet('cluster')
    try:
        with Scene(child, seed, server=False) as scene:
            trial = Trial(scene, servers, '%d moved slots, and one that nobody serves'
                          % (2 * SLOT_MOVES)).open_ill()
            client = servers.client('node0')
            slots = [client.call('CLUSTER', 'KEYSLOT', 'trinco:1:default:{%s}' % b)
                     for b in ('well', 'ill')]
            client.close()
            for _ in range(SLOT_MOVES):
                for slot in slots:
                    source = owner(servers, slot)
                    target = 'node%d' % ((int(source[-1]) + 1) % 3)
                    move(servers, slot, source, target)
            leave_unserved(servers, trial, next(s for s in range(3) if s not in slots))
            time.sleep(0.5)
            return trial.judge(allowed_loss=0, is_moved=True)
    finally:
        servers.close()


def check(child, seconds, seed, plant=None):
    del seconds
    if plant:
        part = with_a_replica_behind if plant == 'nobody_remembers' else with_sentinels
        return [part(child, seed, plant)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        all_three = [pool.submit(with_sentinels, child, seed, plant),
                     pool.submit(with_a_replica_behind, child, seed, plant),
                     pool.submit(with_cluster, child, seed)]
        return [one.result() for one in all_three]
