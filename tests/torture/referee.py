"""The resource, the dependency and the log of the torture, behind one socket. The protocol is
described in referee_client.hpp. A thread a connection; what it sees is in its order."""

import collections
import os
import random
import socket
import threading
import time

from checkers import Access, Grant


def now():
    """Microseconds of the boot clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Dependency:
    """Healthy, then failing, then hanging, and so on; it changes at random moments."""
    PHASES = (('healthy', 4.0), ('failing', 1.5), ('hanging', 1.0))

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.until = 0.0
        self.at = -1

    def answer(self):
        """How long it takes, and how it ends. To be called under the referee's lock."""
        if time.monotonic() >= self.until:
            self.at = (self.at + 1) % len(self.PHASES)
            self.until = time.monotonic() + self.PHASES[self.at][1] * self.random.uniform(0.5, 1.5)
        phase = self.PHASES[self.at][0]
        if phase == 'hanging':
            return 0.3, 'bad'
        return self.random.uniform(0.005, 0.06), 'good' if phase == 'healthy' else 'bad'


class Resource:
    def __init__(self):
        self.value = 0
        self.highest = 0         # token accepted
        self.shadow_highest = 0  # token seen where none is checked


class Referee:
    def __init__(self, path, seed):
        self.path = path
        self.lock = threading.Lock()
        self.resources = collections.defaultdict(Resource)
        self.accesses = []
        self.written = 0       # accesses that were, and that were kept out
        self.kept_out = 0
        self.grants = []
        self.calls = []        # [id, breaker, how, asked, arrived, left]
        self.begun = 0         # outcomes that processes were about to give
        self.clean = 0         # and those of processes that closed
        self.shadow_stale = collections.Counter()  # by role
        self.planned = {}      # of a command, by id
        self.holders = {}      # the last to be granted a name: (id, pid)
        self.health = collections.defaultdict(list)
        self.trouble = []
        self.dependency = Dependency(seed)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(256)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        speaker = {}
        try:
            with connection, connection.makefile('rw', newline='\n') as lines:
                for line in lines:
                    lines.write(self.answer(speaker, line.split()) + '\n')
                    lines.flush()
        except (OSError, ValueError):
            pass  # it was killed
        finally:
            self.left(speaker)

    def left(self, speaker):
        call = speaker.pop('call', None)
        if call is not None and call[5] == 0:
            call[5] = now()

    def answer(self, speaker, words):
        try:
            return getattr(self, 'on_' + words[0])(speaker, *words[1:])
        except Exception as error:  # pylint: disable=broad-except
            self.trouble.append('%s: %r' % (' '.join(words), error))
            raise ValueError from error

    def on_hello(self, speaker, ident, role, pid):
        speaker.update(id=ident, role=role, pid=int(pid))
        return 'ok'

    def on_grant(self, speaker, name, token, asked):
        with self.lock:
            self.grants.append(Grant(name, int(token), int(asked), now()))
            self.holders[name] = (speaker['id'], speaker['pid'])
        return 'ok'

    def on_plan(self, speaker, until):
        with self.lock:
            self.planned[speaker['id']] = int(until)
        return 'ok'

    def on_read(self, _, name, token):
        token = int(token)
        with self.lock:
            r = self.resources[name]
            r.shadow_highest = max(r.shadow_highest, token)
            is_fresh = token >= r.highest
            self.accesses.append(Access(name, token, is_fresh))
            if not is_fresh:
                self.kept_out += 1
                return 'stale'
            r.highest = token
            return 'value %d' % r.value

    def on_write(self, _, name, token, value):
        token = int(token)
        with self.lock:
            r = self.resources[name]
            is_fresh = token >= r.highest
            self.accesses.append(Access(name, token, is_fresh, int(value)))
            if not is_fresh:
                self.kept_out += 1
                return 'stale'
            self.written += 1
            r.highest = token
            r.value = int(value)
            return 'ok'

    def on_shadow(self, speaker, name, token):
        token = int(token)
        with self.lock:
            r = self.resources[name]
            if token < r.shadow_highest:
                self.shadow_stale[speaker['role']] += 1
            r.shadow_highest = max(r.shadow_highest, token)
        return 'ok'

    def on_call(self, speaker, breaker, how, asked):
        call = [speaker['id'], breaker, how, int(asked), now(), 0]
        speaker['call'] = call
        with self.lock:
            self.calls.append(call)
            takes, answer = self.dependency.answer()
        time.sleep(takes)
        self.left(speaker)
        return answer

    def on_settle(self, _, breaker):
        del breaker
        with self.lock:
            self.begun += 1
        return 'ok'

    def on_clean(self, _, breaker, outcomes):
        del breaker
        with self.lock:
            self.clean += int(outcomes)
        return 'ok'

    def on_health(self, speaker, descriptors, resident):
        with self.lock:
            self.health[speaker['id']].append((int(descriptors), int(resident)))
        return 'ok'

    def close(self):
        self.listener.close()
        os.unlink(self.path)
