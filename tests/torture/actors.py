"""The processes of the torture, each started again when it has ended, and what is done to them."""

import collections
import os
import random
import select
import signal
import subprocess
import threading
import time

from checkers import Orphan
from referee import now

TTL = 3.0
KILLED_BOUND = 0.5   # s: the guardian kills at once; the rest is for a busy machine
PAUSED_BOUND = 0.25  # s after the lease could have ended; its margin lies before
PROBE_TIMEOUT = 2_000_000  # us


def children_of(pid):
    found = []
    try:
        for task in os.listdir('/proc/%d/task' % pid):
            with open('/proc/%d/task/%s/children' % (pid, task), encoding='ascii') as f:
                found += [int(word) for word in f.read().split()]
    except OSError:
        pass
    return found


def descendants_of(pid):
    found = []
    for child in children_of(pid):
        found += [child] + descendants_of(child)
    return found


def state_of(pid):
    try:
        with open('/proc/%d/stat' % pid, encoding='utf-8') as f:
            return f.read().rsplit(')', 1)[1].split()[0]
    except OSError:
        return ''


class Handle:
    """A process that cannot be mistaken for another."""

    def __init__(self, pid):
        self.pid = pid
        self.fd = os.pidfd_open(pid)

    def signal(self, number):
        try:
            signal.pidfd_send_signal(self.fd, number)
            return True
        except ProcessLookupError:
            return False

    def has_ended(self):
        return bool(select.select([self.fd], [], [], 0)[0])

    def close(self):
        os.close(self.fd)


def handles_of(pids):
    found = []
    for pid in pids:
        try:
            found.append(Handle(pid))
        except ProcessLookupError:
            pass
    return found


class Actor(threading.Thread):
    """Runs one process after another. kind: library, lock, call, count, look."""

    def __init__(self, stage, kind, number):
        super().__init__(daemon=True)
        self.stage = stage
        self.kind = kind
        self.name = '%s-%d' % (kind, number)
        self.random = random.Random('%s %s' % (stage.seed, self.name))
        self.round = 0
        self.process = None
        self.id = ''
        self.is_spared = kind == 'library' and number == 0  # lives through it all
        self.harmed = False

    def words(self):
        s, r = self.stage, self.random
        if self.kind == 'library':
            return [s.child, 'library', s.file]
        if self.kind == 'count':
            return [s.child, 'count', s.file, self.id]
        if self.kind == 'lock':
            is_long = self.name.endswith(('0', '1', '2'))
            name = r.choice(['long/1', 'long/2']) if is_long else r.choice(['a', 'b'])
            lasts = r.uniform(6, 9) if is_long else r.uniform(0.05, 0.4)
            return [s.program, 'lock', name, '--locks', s.url, '--ttl', '%ds' % TTL, '--wait', '5s',
                    '--', s.child, 'command', '%.2f' % lasts]
        if self.kind == 'call':
            return [s.program, 'call', 'dep', '--config', s.config, '--breakers', s.url,
                    '--timeout', '500ms', '--grace', '500ms', '-v', '--', s.child, 'callee',
                    'unknown']
        return [s.program] + r.choice([
            ['locks', 'ls', '--locks', s.url, '-o', 'json'],
            ['locks', 'show', 'a', '--locks', s.url],
            ['breakers', 'ls', '--breakers', s.url, '-o', 'json'],
            ['breakers', 'show', 'dep', '--breakers', s.url]])

    def run(self):
        while not self.stage.over.is_set():
            self.round += 1
            self.id = '%s.%d' % (self.name, self.round)
            self.one()
            if self.kind in ('call', 'look'):
                time.sleep(self.random.uniform(0.02, 0.3))

    def one(self):
        environment = dict(os.environ, TRINCO_TORTURE_ID=self.id,
                           TRINCO_TORTURE_AT=self.stage.referee.path,
                           TRINCO_TORTURE_ASKED=str(now()))
        self.harmed = False
        process = subprocess.Popen(
            self.words(), env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if self.kind == 'count' else subprocess.DEVNULL,
            stderr=subprocess.PIPE if self.kind == 'call' else self.stage.errors, text=True)
        self.process = process
        if self.kind == 'count':
            for line in process.stdout:
                if line.endswith('\n'):
                    self.stage.acknowledged[self.id] = int(line)
        elif self.kind == 'call':
            said = process.stderr.read()
            if 'this call is a probe' in said:
                self.stage.probing.add(self.id)
            if 'outcome was not counted' in said or 'without its breaker' in said:
                self.stage.counts['calls without an answer of the store'] += 1
        code = process.wait()
        process.stdin.close()
        if self.kind == 'count':
            process.stdout.close()
        elif self.kind == 'call':
            process.stderr.close()
        if self.harmed:
            self.stage.deaths += code < 0 or self.kind in ('lock', 'call')
        else:
            self.stage.endings[(self.kind, code)] += 1

    def picture(self):
        """Its processes, what they are and what they wait for, for whoever looks for a mistake."""
        found = []
        for pid in [self.process.pid] + descendants_of(self.process.pid):
            try:
                with open('/proc/%d/cmdline' % pid, encoding='utf-8') as f:
                    words = f.read().replace('\0', ' ')
                with open('/proc/%d/wchan' % pid, encoding='utf-8') as f:
                    found.append('%d %s %s [%s]' % (pid, state_of(pid), f.read(), words))
            except OSError:
                pass
        return '; '.join(found)

    def finish(self):
        """No other one; a library process closes."""
        process = self.process
        if process is None:
            return
        if self.kind == 'library' and process.poll() is None:
            try:
                process.stdin.close()
            except OSError:
                pass
        if self.kind == 'count':
            self.harmed = True
            process.kill()


class Faults(threading.Thread):
    """One after another, each somewhere else."""

    def __init__(self, stage, number):
        super().__init__(daemon=True)
        self.stage = stage
        self.random = random.Random('%s faults %d' % (stage.seed, number))
        self.done = collections.Counter()

    def run(self):
        while not self.stage.over.wait(self.random.uniform(0.1, 1.2)):
            actor = self.choose()
            process = actor.process if actor else None
            if process is None or process.poll() is not None:
                continue
            if not self.stage.take(actor):
                continue
            try:
                self.harm(actor, process)
            except (ProcessLookupError, OSError):
                pass  # it was quicker
            finally:
                self.stage.give_back(actor)

    def choose(self):
        actors = self.stage.actors
        if self.random.random() < 0.3:  # who will hold a lock for long enough to be hit
            for _ in range(50):
                planned = self.stage.referee.planned
                busy = [a for a in actors
                        if a.kind == 'library' and planned.get(a.id, 0) > now() + 100_000]
                if busy:
                    return self.random.choice(busy)
                time.sleep(0.01)
        if self.random.random() < 0.5:  # who holds a lock now
            held = list(self.stage.referee.holders.values())
            if held:
                ident = self.random.choice(held)[0]
                found = [a for a in actors if a.id == ident]
                if found:
                    return found[0]
        return self.random.choice(actors)

    def harm(self, actor, process):
        if actor.kind in ('lock', 'call'):
            return self.harm_wrapped(actor, process)
        target = Handle(process.pid)
        try:
            if actor.is_spared or self.random.random() < 0.6:
                self.pause(target, actor.kind, long=not actor.is_spared)
            else:
                actor.harmed = True
                if target.signal(signal.SIGKILL):
                    self.done['kill ' + actor.kind] += 1
                    self.stage.kills[actor.kind] += 1
        finally:
            target.close()

    def pause(self, target, what, long=True):
        is_long = long and self.random.random() < 0.4
        lasts = self.random.uniform(TTL + 0.5, TTL + 2) if is_long else self.random.uniform(.02, .8)
        if not target.signal(signal.SIGSTOP):
            return
        self.done['%s pause %s' % ('long' if is_long else 'short', what)] += 1
        self.stage.over.wait(lasts)
        target.signal(signal.SIGCONT)

    def harm_wrapped(self, actor, process):
        guardians = children_of(process.pid)
        commands = children_of(guardians[0]) if guardians else []
        roles = [('wrapper', process.pid)] * 2
        if guardians:
            roles.append(('guardian', guardians[0]))
        if commands:
            roles.append(('command', commands[0]))
        role, pid = self.random.choice(roles)
        target = Handle(pid)
        # What must go with it: everything below, and the command with a killed guardian.
        below = handles_of(p for p in descendants_of(process.pid) if p != pid)
        if role == 'guardian':
            below = [h for h in below if h.pid not in guardians]
        try:
            if self.random.random() < 0.5:
                self.kill(actor, role, target, below if commands else [])
            elif role == 'wrapper' and actor.kind == 'lock' and self.random.random() < 0.5:
                self.pause_wrapper(actor, target, below if commands else [])
            else:
                actor.harmed = True
                self.pause(target, '%s of %s' % (role, actor.kind))
                # With its command a wrapper stops, too, as a job does; who continues a job
                # continues both.
                os.kill(process.pid, signal.SIGCONT)
        finally:
            for handle in [target] + below:
                handle.close()

    def kill(self, actor, role, target, below):
        actor.harmed = True
        planned = self.stage.referee.planned.get(actor.id, 0)
        if not target.signal(signal.SIGKILL):
            return
        killed = now()
        self.done['kill %s of %s' % (role, actor.kind)] += 1
        if role != 'command' and below:
            self.expect_gone(actor, '%s of %s killed' % (role, actor.kind), killed, planned,
                             killed + int(KILLED_BOUND * 1e6), below)

    def pause_wrapper(self, actor, target, below):
        """Longer than the lease lasts: its command must be gone by then."""
        actor.harmed = True
        planned = self.stage.referee.planned.get(actor.id, 0)
        if not target.signal(signal.SIGSTOP):
            return
        paused = now()
        self.done['long pause wrapper of lock'] += 1
        if below:
            # The guardian itself waits for the wrapper.
            guardians = set(children_of(target.pid))
            self.expect_gone(actor, 'wrapper of lock paused', paused, planned,
                             paused + int((TTL + PAUSED_BOUND) * 1e6),
                             [h for h in below if h.pid not in guardians],
                             lambda: state_of(target.pid) == 'T')
        self.stage.over.wait(max(0, paused / 1e6 + TTL + 0.5 - now() / 1e6))
        target.signal(signal.SIGCONT)

    def expect_gone(self, actor, why, since, planned, bound, handles, still=lambda: True):
        """Not when what was done to it has been undone meanwhile: a guardian continues a wrapper
        that stopped with its command, and does not know who else stopped it."""
        looks_after = 0  # the bound
        while looks_after < 300 and not all(h.has_ended() for h in handles):
            if now() > bound:
                if looks_after == 0 and not still():
                    self.done['continued by its guardian'] += 1
                    return
                looks_after += 1
                if looks_after == 5:
                    self.stage.pictures.append('%s, %s: %s' % (why, actor.id, actor.picture()))
            time.sleep(0.01)
        self.stage.orphans.append(Orphan(why, since, planned, bound, now()))


class Pulse(threading.Thread):
    """Notices when the machine, or this process, stands still."""

    BEAT = 0.02
    STALL = 100_000  # us

    def __init__(self, over):
        super().__init__(daemon=True)
        self.over = over
        self.stalls = []

    def run(self):
        before = now()
        while not self.over.wait(self.BEAT):
            at = now()
            if at - before > self.STALL:
                self.stalls.append((before, at))
            before = at
