"""The processes of a fleet, and a scene in which they play: servers, proxies, a dependency."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from dependency import Dependency, now
from proxy import Proxy
from servers import Server

# Quick ones, so that a proof takes seconds.
QUICK = {'minimum_calls': 10, 'window_ms': 2000, 'window_slices': 10, 'open_for_ms': 500,
         'open_max_ms': 2000, 'half_open_probes': 3, 'probe_timeout_ms': 400, 'quorum': 2,
         'live_for_ms': 3000, 'sync_interval_ms': 50, 'store_timeout_ms': 100,
         'degraded_after_ms': 300, 'key_ttl_ms': 60000}


def wait_for(what, limit, says):
    """Until what() is true, and it; an error that says what was waited for after `limit` s."""
    end = time.monotonic() + limit
    while True:
        found = what()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError('%.0f s were not enough: %s' % (limit, says))
        time.sleep(0.01)


class Process:
    """A process of fleet_child. `cast`: (instance, voter, url) of each of its instances."""

    def __init__(self, scene, cast, options, breakers, threads=1, outside=True):
        self.cast = cast
        self.events = []
        self.answers = []
        self.last = []       # reports of breakers when it closed
        self.told = threading.Condition()
        words = [scene.child, 'fleet', ','.join('%s=%s' % pair for pair in options.items()),
                 ','.join(breakers), scene.dependency.path if outside else '-', str(threads)]
        for one in cast:
            words += list(one)
        self.process = subprocess.Popen(words, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=scene.errors)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        scene.processes.append(self)

    def read(self):
        for line in self.process.stdout:
            if not line.endswith('\n'):
                break  # it was killed in the middle
            said = json.loads(line)
            with self.told:
                if 'event' in said:
                    self.events.append(said)
                elif 'last' in said:
                    self.last.append(said['last'])
                else:
                    self.answers.append(said)
                self.told.notify_all()

    def answer(self, key, limit=20):
        """The next answer that has this key."""
        with self.told:
            found = self.told.wait_for(
                lambda: next((a for a in self.answers if key in a), None)
                or (self.process.poll() is not None and not self.reader.is_alive()), limit)
            if not isinstance(found, dict):
                raise AssertionError('a process of the fleet did not answer "%s"' % key)
            self.answers.remove(found)
            return found

    def say(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()

    def ready(self):
        self.answer('ready')
        return self

    def report(self):
        self.say('report')
        return self.answer('report')['report']

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(10)
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self):
        """Sends what it has; the reports of its end."""
        self.say('close')
        self.answer('closed')
        self.process.wait(10)
        self.reader.join(10)
        self.process.stdin.close()
        self.process.stdout.close()
        return self.last


class Scene:
    """With one server, or with none when a URL of another store is given."""

    def __init__(self, child, seed, *settings, server=True):
        self.child = child
        self.seed = seed
        self.folder = tempfile.mkdtemp(prefix='trinco-')
        self.errors = open(os.path.join(self.folder, 'errors'), 'w+', encoding='utf-8')
        self.processes = []
        self.proxies = []
        self.dependency = Dependency(os.path.join(self.folder, 'd'), seed)
        self.server = Server(os.path.join(self.folder, 'r'), *settings) if server else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.processes:
            if p.process.poll() is None:
                p.kill()
        for p in self.proxies:
            p.close()
        if self.server and self.server.process.poll() is None:
            self.server.resume()
            self.server.kill()
        self.dependency.close()
        self.errors.seek(0)
        said = self.errors.read()
        self.errors.close()
        if said:
            print('the fleet said on stderr:\n' + said[:2000])
        shutil.rmtree(self.folder, ignore_errors=True)

    def proxy(self):
        path = os.path.join(self.folder, 'p%d' % len(self.proxies))
        self.proxies.append(Proxy(path, self.server.path, self.seed + len(self.proxies)))
        return self.proxies[-1]

    def start(self, casts, options, breakers, threads=1, outside=True):
        """A process for each cast, all of them ready."""
        started = [Process(self, cast, options, breakers, threads, outside) for cast in casts]
        return [p.ready() for p in started]

    def inspect(self, breaker, url=None):
        """The record, or {'error': why it cannot be seen}."""
        said = subprocess.run([self.child, 'inspect', url or self.server.url(), breaker],
                              check=False, capture_output=True, text=True, timeout=30)
        return json.loads(said.stdout or json.dumps({'error': said.stderr}))


def tell(processes, line):
    for p in processes:
        p.say(line)


def reports(processes):
    tell(processes, 'report')
    return [r for p in processes for r in p.answer('report')['report']]


def slow_decisions(found):
    """What is wrong with the time that the decisions of these reports took, as sentences. One in a
    hundred may take over a millisecond, and two of a few: a thread loses its processor."""
    count = sum(r['cached_count'] for r in found)
    slow = sum(r['cached_long'] for r in found)
    waited = sum(r['waited'] for r in found)
    wrong = []
    if slow > max(2, count // 100):
        wrong.append('%d of %d decisions took over a millisecond' % (slow, count))
    if waited:
        wrong.append('%d decisions waited for something' % waited)
    return wrong


def events(processes, breaker=None, kind=None, since=0):
    found = [e for p in processes for e in list(p.events)
             if (breaker is None or e['breaker'] == breaker)
             and (kind is None or e['event'] == kind) and e['at'] >= since]
    return sorted(found, key=lambda e: e['at'])


def all_in(processes, breaker, state, key='state'):
    return all(r[key] == state for r in reports(processes) if r['breaker'] == breaker)


__all__ = ['QUICK', 'Process', 'Scene', 'all_in', 'events', 'now', 'reports', 'signal', 'tell',
           'wait_for']
