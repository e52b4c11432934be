"""Twenty processes of the library and of the program on one file of local:, killed and paused at
random, and judges who look at what comes of it.

    torture.py TRINCO TORTURE_CHILD [--seconds N] [--seed N]

TRINCO_TORTURE_SECONDS and TRINCO_TORTURE_SEED say the same; 600 s unless said. The seed decides who
is hurt, when and how; what the machine makes of it differs from run to run.
"""

import argparse
import collections
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import checkers
from actors import Actor, Faults, PROBE_TIMEOUT, Pulse, TTL
from referee import Referee, now

PROBES = 3
CAST = (('library', 7), ('lock', 6), ('call', 4), ('count', 2), ('look', 1))
INJURERS = 4
POLICY = '''[breakers.policies.dep]
minimum_calls = 10
window = "2s"
open_for = "300ms"
open_backoff = 1.5
open_max = "1s"
half_open_probes = %d
probe_timeout = "2s"
quorum = 1
live_for = "10s"
store_timeout = "500ms"
''' % PROBES
# How a process may end that nobody hurt: the program's own codes (1 of look: nothing is there), of
# its command's (1: the dependency, or the referee is gone; 4: stale), of its wrapper's: 69 the
# store was held up, 75, 76, and of a command that ran out of time 128+15 and 128+9.
ALLOWED = {'library': {0, 1}, 'count': set(), 'look': {0, 1, 64, 69},
           'call': {0, 1, 69, 75, 143, 137}, 'lock': {0, 1, 4, 69, 75, 76, 137, 143}}


class Stage:
    def __init__(self, options):
        self.program, self.child = options.program, options.child
        self.seed = options.seed
        self.seconds = options.seconds
        self.folder = tempfile.mkdtemp(prefix='trinco-torture-')
        self.file = os.path.join(self.folder, 'local.db')
        self.url = 'local:' + self.file
        self.config = os.path.join(self.folder, 'trinco.toml')
        with open(self.config, 'w', encoding='ascii') as f:
            f.write(POLICY)
        self.errors = open(os.path.join(self.folder, 'errors'), 'w+', encoding='utf-8')
        self.referee = Referee(os.path.join(self.folder, 'referee'), self.seed)
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.hurt = set()            # actors that somebody is hurting
        self.acknowledged = {}       # by counting instance
        self.probing = set()         # calls of the program that were probes
        self.endings = collections.Counter()
        self.counts = collections.Counter()
        self.kills = collections.Counter()
        self.deaths = 0
        self.orphans = []
        self.pictures = []           # of those that were late to end
        self.actors = [Actor(self, kind, n) for kind, many in CAST for n in range(many)]
        self.faults = [Faults(self, n) for n in range(INJURERS)]
        self.pulse = Pulse(self.over)

    def take(self, actor):
        """One injury at a time: two at once are beyond what a guardian promises."""
        with self.lock:
            if actor.name in self.hurt:
                return False
            self.hurt.add(actor.name)
            return True

    def give_back(self, actor):
        with self.lock:
            self.hurt.discard(actor.name)

    def faults_done(self):
        return sum((f.done for f in self.faults), collections.Counter())

    def progress(self, began):
        r = self.referee
        faults = self.faults_done()
        print('%4d s: %d grants, %d increments, %d stale writes kept out, %d calls, %d faults '
              '(%d kills), %d reports counted'
              % (time.monotonic() - began, len(r.grants), r.written, r.kept_out, len(r.calls),
                 sum(faults.values()),
                 sum(n for what, n in faults.items() if what.startswith('kill')),
                 sum(self.acknowledged.values())), flush=True)

    def play(self):
        began = time.monotonic()
        for one in self.actors + self.faults + [self.pulse]:
            one.start()
        while time.monotonic() - began < self.seconds:
            time.sleep(min(10, max(0.1, began + self.seconds - time.monotonic())))
            self.progress(began)
        self.over.set()
        for one in self.faults:
            one.join(30)
        for one in self.actors:
            one.finish()
        for one in self.actors:
            one.join(30)
        return [a for a in self.actors if a.is_alive()]


def marked_processes(ids):
    """Of this torture, whoever they are children of."""
    found = []
    for name in os.listdir('/proc'):
        try:
            with open('/proc/%s/environ' % name, 'rb') as f:
                words = f.read().split(b'\0')
        except OSError:
            continue
        if any(w.startswith(b'TRINCO_TORTURE_AT=') and w.endswith(ids) for w in words):
            found.append(int(name))
    return found


class Aftermath:
    """When all is over: who comes by tidies up, and then nothing may be left."""

    def __init__(self, stage):
        self.stage = stage
        self.refused = 0  # visits

    def visit(self):
        done = subprocess.run([self.stage.child, 'visit', self.stage.file], check=False, timeout=30)
        self.refused += done.returncode != 0

    def sockets(self):
        return glob.glob(glob.escape(self.stage.file) + '-s' + 16 * '[0-9a-f]')

    def sweep(self):
        """What killed processes left is looked for now and then, when it is a minute old."""
        for one in self.sockets():
            os.utime(one, (time.time() - 300, time.time() - 300))
        for _ in range(400):
            if not self.sockets():
                return
            self.visit()

    def table(self, name):
        with sqlite3.connect('file:%s?mode=ro' % self.stage.file, uri=True) as db:
            return db.execute('SELECT count(*) FROM ' + name).fetchone()[0]

    def totals(self, breaker):
        said = subprocess.run([self.stage.program, 'breakers', 'show', breaker, '--breakers',
                               self.stage.url, '-o', 'json'], check=True, timeout=30,
                              capture_output=True, text=True).stdout
        found = json.loads(said)
        while 'totals' not in found:  # inside of whatever it is wrapped in
            found = next(v[0] if isinstance(v, list) else v for v in found.values()
                         if isinstance(v, (dict, list)))
        return found['totals']

    def left(self):
        time.sleep(TTL + 1)
        self.visit()
        at = self.stage.referee.path.encode()
        found = {'processes': len(marked_processes(at)), 'sessions': self.table('sessions'),
                 'claims': self.table('claims'), 'entries': self.table('entries')}
        # Whoever tells others of a change finds those who do not listen any more.
        subprocess.run([self.stage.program, 'breakers', 'reset', 'dep', '--reason', 'over',
                        '--breakers', self.stage.url], timeout=30, stdout=subprocess.DEVNULL,
                       check=False)
        self.visit()
        self.sweep()
        found['sockets'] = len(self.sockets())
        found['refusals of those who came by'] = self.refused
        found['files beside it'] = len(glob.glob(glob.escape(self.stage.file) + '*')) - 5
        wal = os.path.getsize(self.stage.file + '-wal')
        found['MiB of log beyond 64'] = max(0, wal - (64 << 20)) >> 20
        return found


def verdicts(stage, aftermath):
    r, seconds = stage.referee, stage.seconds
    accesses, grants = list(r.accesses), list(r.grants)
    left = now()
    calls = [checkers.Call(breaker, how == 'fleet' or ident in stage.probing,
                           asked + PROBE_TIMEOUT, arrived, gone or left)
             for ident, breaker, how, asked, arrived, gone in list(r.calls)]
    left_behind = aftermath.left()
    dep, counted = aftermath.totals('dep'), aftermath.totals('counted')
    finals = {name: resource.value for name, resource in r.resources.items()}
    spared = [h for ident, h in r.health.items() if ident.startswith('library-0.')]
    program_calls = sum(a.round for a in stage.actors if a.kind == 'call')
    return [
        checkers.tokens_at_the_resource(accesses, seconds // 2),
        checkers.stale_work(r.shadow_stale, seconds // 60),
        checkers.tokens_of_grants(grants, seconds // 2),
        checkers.increments(accesses, finals, 2 * seconds),
        checkers.orphans(stage.orphans, seconds // 30, stage.pulse.stalls),
        checkers.leftovers(left_behind, stage.deaths, seconds // 20),
        checkers.probes(calls, PROBES, seconds // 10),
        checkers.counted(stage.acknowledged, stage.kills['count'] + 2, counted['success'],
                         seconds),
        checkers.counted_by_registries(r.clean, r.begun + program_calls,
                                       dep['success'] + dep['failure'], 1),
        checkers.manners(stage.endings, ALLOWED),
        checkers.growth(spared[0] if spared else [], 2),
    ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('child')
    parser.add_argument('--seconds', type=int,
                        default=int(os.environ.get('TRINCO_TORTURE_SECONDS', '600')))
    parser.add_argument('--seed', type=int, default=int(
        os.environ.get('TRINCO_TORTURE_SEED', str(random.SystemRandom().randrange(1 << 32)))))
    stage = Stage(parser.parse_args())
    print('torture: %d processes, %d s, seed %d (TRINCO_TORTURE_SEED), in %s'
          % (len(stage.actors), stage.seconds, stage.seed, stage.folder), flush=True)
    try:
        return perform(stage)
    finally:
        end_all(stage)


def end_all(stage):
    """Also when it was interrupted, and somebody is stopped for ever. Twice in a row nobody: actors
    may have been about to start another one."""
    stage.over.set()
    quiet = 0
    while quiet < 2:
        found = marked_processes(stage.referee.path.encode())
        quiet = 0 if found else quiet + 1
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.1)


def perform(stage):
    late = stage.play()
    for actor in late:
        print('%s did not end: %s' % (actor.name, actor.picture()))
    judged = verdicts(stage, Aftermath(stage))
    print('faults: ' + ', '.join('%d %s' % (n, what)
                                 for what, n in sorted(stage.faults_done().items())))
    print('endings: ' + ', '.join('%d %s %d' % (n, kind, code)
                                  for (kind, code), n in sorted(stage.endings.items())))
    for what in stage.pictures[:5]:
        print('late: ' + what)
    for what in stage.referee.trouble[:5]:
        print('the referee did not understand: ' + what)
    for one in judged:
        print(one.text())
    failed = bool(late) or bool(stage.referee.trouble) or any(v.failed() for v in judged)
    stage.errors.flush()
    if failed:
        print('it is all left in %s; seed %d' % (stage.folder, stage.seed))
        return 1
    stage.errors.close()
    shutil.rmtree(stage.folder)
    return 0


if __name__ == '__main__':
    sys.exit(main())
