"""Processes of the library and of `trinco lock` on three nodes of etcd. They and the nodes are
killed, paused and cut off at random, and whoever believes to hold a lock writes it down.

    etcd_fleet.py TRINCO BELIEF_CHILD [--seconds N] [--seed N] [--plant careless]

What must hold: no lock is believed in by two at a time; it goes on being granted; when all is over
nothing is left. The seed decides who is hurt, when and how. `--plant careless`: holders of the
library do not look whether they still hold, which must be found.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'apps' / 'etcd'))
import beliefs  # noqa: E402
from cluster import (Cluster, Networks, NoNetworks, end_with_parent, find,  # noqa: E402
                     wait_until)

TTL = 3  # s, as in the child
NAMES = ['alpha', 'beta/1', 'gamma']
NODES = ['n0', 'n1', 'n2']
LIBRARY, PROGRAM = 5, 4
# Of `trinco lock`: of its command, the store did not answer, not had in time, lost, killed.
ALLOWED = {0, 69, 75, 76, 137, 143}
MARK = 'TRINCO_ETCD_FLEET'
SKIPPED = 77


class Actor(threading.Thread):
    """One who holds locks, again and again, for as long as it is let."""

    def __init__(self, stage, number):
        super().__init__(daemon=True)
        self.stage, self.number = stage, number
        self.site = NODES[number % 3]
        self.random = random.Random(f'{stage.seed}/{number}')
        self.process = None
        self.rounds = 0
        self.is_hurt = threading.Lock()  # one injury at a time: two are beyond what is promised
        self.endings = collections.Counter()

    def diary(self):
        return str(self.stage.folder / f'{type(self).__name__}{self.number}-{self.rounds}.diary')

    def begin(self, *words):
        self.process = subprocess.Popen(
            [*self.stage.networks.inside[self.site], *words], env=self.stage.environment,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self.stage.errors,
            preexec_fn=end_with_parent)

    def run(self):
        while not self.stage.over.is_set():
            self.rounds += 1
            self.begin(*self.words())
            self.endings[self.process.wait()] += 1


class Library(Actor):
    def words(self):
        how = 'careless' if self.stage.plant == 'careless' else 'hold'
        return [self.stage.child, how, self.stage.url, self.diary(), *NAMES]

    def finish(self):
        self.process.stdin.close()


class Program(Actor):
    def words(self):
        seconds = f'{self.random.uniform(0.02, 0.5):.3f}'
        return [self.stage.program, 'lock', self.random.choice(NAMES), '--ttl', f'{TTL}s',
                '--wait', '6s', '--quiet', '--', self.stage.child, 'under', self.diary(), seconds]

    def finish(self):
        pass


class Faults(threading.Thread):
    """Hurts the actors; another one the nodes, of which a majority is always well."""

    def __init__(self, stage, of_nodes):
        super().__init__(daemon=True)
        self.stage = stage
        self.random = random.Random(f'{stage.seed}/faults/{of_nodes}')
        self.done = collections.Counter()
        self.hurt = self.hurt_node if of_nodes else self.hurt_actor
        self.rest = (2.0, 5.0) if of_nodes else (0.1, 0.8)
        self.is_idle = threading.Event()

    def run(self):
        while not self.stage.over.wait(self.random.uniform(*self.rest)):
            self.hurt()
        self.is_idle.set()
        # The nodes that it has started end with their parent, which is this thread.
        self.stage.judged.wait()

    def hurt_actor(self):
        actor = self.random.choice(self.stage.actors[1:])
        if not actor.process or not actor.is_hurt.acquire(blocking=False):
            return
        try:
            self.hurt_process(actor)
        except ProcessLookupError:
            pass  # over by itself
        finally:
            actor.is_hurt.release()

    def hurt_process(self, actor):
        pid, what = actor.process.pid, 'process'
        if isinstance(actor, Program) and self.random.random() < 0.3:
            pid, what = child_of(pid), 'guardian'
            if pid is None:
                return
        if self.random.random() < 0.4:
            os.kill(pid, signal.SIGKILL)
            self.done[f'{what} killed'] += 1
            return
        os.kill(pid, signal.SIGSTOP)
        try:
            self.stage.over.wait(self.random.uniform(0.1, 1.8 * TTL))
            self.done[f'{what} paused'] += 1
        finally:
            os.kill(pid, signal.SIGCONT)

    def hurt_node(self):
        node = self.random.choice(self.stage.etcd.nodes)
        how = self.random.choice(['killed', 'paused', 'cut off'])
        end, begin = {
            'killed': (self.stage.etcd.kill, self.stage.etcd.begin),
            'paused': (self.stage.etcd.pause, self.stage.etcd.go_on),
            'cut off': (lambda n: self.stage.networks.cut(n.name),
                        lambda n: self.stage.networks.restore(n.name))}[how]
        end(node)
        try:
            self.stage.over.wait(self.random.uniform(0.5, 2.5 * TTL))
            self.done[f'node {how}'] += 1
        finally:
            begin(node)
        # The next one may be hurt when this one follows again.
        self.stage.etcd.wait_for(node)


def child_of(pid):
    try:
        with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as children:
            found = children.read().split()
    except OSError:
        return None
    return int(found[0]) if found else None


def marked_processes(mark):
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/environ', 'rb') as f:
                words = f.read().split(b'\0')
        except OSError:
            continue
        if mark in words:
            found.append(int(pid))
    return found


class Stage:
    def __init__(self, options, networks):
        self.program = os.path.abspath(options.program)
        self.child = os.path.abspath(options.child)
        self.seed, self.seconds, self.plant = options.seed, options.seconds, options.plant
        self.networks = networks
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='trinco-etcd-fleet-'))
        self.etcd = Cluster(self.folder / 'etcd', nodes=3, networks=networks)
        self.url = self.etcd.url
        self.errors = open(self.folder / 'errors', 'w', encoding='utf-8')
        (self.folder / 'none.toml').touch()
        self.environment = {**os.environ, MARK: str(self.folder), 'TRINCO_LOCKS': self.url,
                            'TRINCO_CONFIG': str(self.folder / 'none.toml')}
        self.over = threading.Event()
        self.judged = threading.Event()
        # The first is hurt by nobody: what it needs must not grow.
        self.actors = [*(Library(self, n) for n in range(LIBRARY)),
                       *(Program(self, n) for n in range(LIBRARY, LIBRARY + PROGRAM))]
        self.faults = [Faults(self, False), Faults(self, False), Faults(self, True)]

    def needs(self):
        """Descriptors and threads of the one that is spared."""
        at = f'/proc/{self.actors[0].process.pid}'
        return len(os.listdir(f'{at}/fd')), len(os.listdir(f'{at}/task'))

    def play(self):
        began = time.monotonic()
        for one in self.actors + self.faults:
            one.start()
        early = None
        while (left := began + self.seconds - time.monotonic()) > 0:
            time.sleep(min(10, left))
            if self.plant and beliefs.overlaps(beliefs.read(self.folder)):
                break
            early = early or self.needs()
            hurt = sum(sum(one.done.values()) for one in self.faults)
            print(f'{time.monotonic() - began:4.0f} s: {beliefs.grants(beliefs.read(self.folder))} '
                  f'grants, {hurt} faults', flush=True)
        self.over.set()
        for one in self.faults:
            one.is_idle.wait(60)
        late = self.needs()
        for one in self.actors:
            one.finish()
        for one in self.actors:
            one.join(30)
        stuck = [one for one in self.actors if one.is_alive()]
        grown = zip(('descriptors', 'threads'), early or late, late)
        return [f'{type(one).__name__}{one.number} did not end' for one in stuck] + [
            f'{what} grew from {a} to {b}' for what, a, b in grown if b > a + 4]

    def left(self):
        """What nobody has taken away in the time that it may need."""
        mark = f'{MARK}={self.folder}'.encode()

        def keys():
            return [key for name in NAMES for key in self.etcd.keys(name + '/')]

        def leases():
            said = [self.etcd.ctl('lease', 'timetolive', one).stdout for one in self.etcd.leases()]
            ttls = [re.search(r'granted with TTL\((\d+)s\)', words) for words in said]
            return [one.group(0) for one in ttls if one and int(one.group(1)) < 600]

        found = []
        for what, is_there in (('keys', keys), ('leases', leases),
                               ('processes', lambda: marked_processes(mark))):
            try:
                wait_until(lambda look=is_there: not look(), what, patience=TTL + 10)
            except AssertionError:
                found.append(f'{what} are left: {is_there()}')
        return found

    def end(self):
        self.over.set()
        self.judged.set()
        for pid in marked_processes(f'{MARK}={self.folder}'.encode()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.etcd.end()
        self.networks.end()


def judge(stage):
    wrong = stage.play() + stage.left()
    spans = beliefs.read(stage.folder)
    doubles = beliefs.overlaps(spans)
    done = sum((one.done for one in stage.faults), collections.Counter())
    print('faults: ' + ', '.join(f'{n} {what}' for what, n in sorted(done.items())))
    endings = sum((a.endings for a in stage.actors if isinstance(a, Program)),
                  collections.Counter())
    print('trinco lock ended with: ' + ', '.join(f'{code} {n} times'
                                                 for code, n in sorted(endings.items())))
    print(f'{beliefs.grants(spans)} grants, {len(doubles)} times two at a time')
    if stage.plant:
        return [] if doubles else ['the planted mistake was not found']
    wrong += [f'trinco lock ended with {code}' for code in endings
              if code not in ALLOWED | {-signal.SIGKILL}]
    if beliefs.grants(spans) < stage.seconds:
        wrong.append('less than a grant a second')
    return wrong + doubles


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('child')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument('--plant', choices=['careless'])
    options = parser.parse_args()
    if not find() or not find('etcdctl'):
        print('SKIPPED: there is no etcd; try `make servers`')
        return SKIPPED
    try:
        networks = Networks(NODES)
    except NoNetworks as error:
        print('SKIPPED: no right to make network namespaces:', error)
        return SKIPPED
    stage = Stage(options, networks)
    print(f'etcd fleet: {len(stage.actors)} processes on 3 nodes, {stage.seconds} s, seed '
          f'{stage.seed}, in {stage.folder}', flush=True)
    try:
        wrong = judge(stage)
    finally:
        stage.end()
        stage.errors.close()
    for what in wrong:
        print('WRONG: ' + what)
    if wrong:
        print(f'it is all left in {stage.folder}; seed {stage.seed}')
        return 1
    shutil.rmtree(stage.folder)
    return 0


if __name__ == '__main__':
    sys.exit(main())
