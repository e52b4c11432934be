"""What may happen to a server, as pairs of deeds: how it begins and how it ends."""

import os
import threading

from fleet import reports, wait_for
from records import key_of, set_ahead
from servers import Client, Refused


class Fault:
    """`says`: what the store must say about itself meanwhile, where it is told why. `silent`: for
    which of the breakers it does not answer: 'all', 'well', 'ill' or 'none'. `slow`: those who were
    denied ask again only every 5 s. `user`: by whose name the fleet comes, if not by nobody's.
    `first`: what the event may say instead, where something else comes before it. `is_cut`: all
    begins with connections that are cut."""

    def __init__(self, name, begin, end, says='', silent='all', slow=False, user='', first=None,
                 is_cut=False):
        self.name, self.begin, self.end, self.says = name, begin, end, says
        self.silent, self.slow, self.user = silent, slow, user
        self.is_cut = is_cut
        self.first = 'connection' if is_cut else first or says


def nothing(scene):
    del scene


def each_proxy(line):
    def deed(scene):
        for p in scene.proxies:
            p.obey(line)
    return deed


def command(*words):
    return lambda scene: scene.server.call(*words)


def deny(*words):
    """And whoever is there already has to come anew."""
    def deed(scene):
        scene.server.call(*words)
        each_proxy('cut')(scene)
    return deed


def begin_wrong_type(breaker):
    def deed(scene):
        scene.server.call('DEL', key_of(breaker))
        scene.server.call('SET', key_of(breaker), 'not a record')
    return deed


def clock_behind(scene):
    """As on a server whose clock is an hour behind that of the one before."""
    for breaker in ('well', 'ill'):
        set_ahead(scene.server, breaker, 3600e6)


def begin_misconf(scene):
    """Saving cannot succeed, and so writing is refused."""
    os.makedirs(os.path.join(scene.server.folder, 'folder', 'in-it'))
    scene.server.call('CONFIG', 'SET', 'dbfilename', 'folder')
    scene.server.call('CONFIG', 'SET', 'save', '3600 1000000')
    try:
        scene.server.call('SAVE')
    except Refused:
        pass
    scene.server.call('BGSAVE')


def end_misconf(scene):
    scene.server.call('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no')


def begin_busy(scene):
    scene.server.call('CONFIG', 'SET', 'lua-time-limit', '20')
    other = Client(scene.server.path)
    threading.Thread(target=lambda: hold_up(other), daemon=True).start()


def hold_up(client):
    try:
        client.call('EVAL', 'while true do end', 0)
    except (Refused, OSError, ConnectionError):
        pass


def as_replica(scene):
    scene.server.call('REPLICAOF', '127.0.0.1', '1')


def as_stale_replica(scene):
    scene.server.call('CONFIG', 'SET', 'replica-serve-stale-data', 'no')
    as_replica(scene)


KEYS, LOAD_DELAY = 3_000, 10_000  # us for each key, between which it answers


def begin_loading(scene):
    """It is back, and says only that it is loading, for longer than anybody would wait."""
    s = scene.server
    s.call('CONFIG', 'SET', 'rdbcompression', 'no')
    s.call('DEBUG', 'POPULATE', KEYS, 'filler', '2000')
    s.dump()
    s.kill()
    s.place_dump(True)
    ours = s.settings
    s.settings = ours + ['--key-load-delay', str(LOAD_DELAY),
                         '--loading-process-events-interval-bytes', '1024']
    s.launch()
    s.settings = ours
    s.client = s.answering('LOADING')

    wait_for(lambda: all('LOADING' in r['trouble'] for r in reports(scene.processes)), 15,
             'all are told that it is loading')


def end_loading(scene):
    scene.server.call('CONFIG', 'SET', 'key-load-delay', '0')
    scene.server.client = scene.server.answering('PONG')


def begin_wrongpass(scene):
    scene.server.call('ACL', 'SETUSER', 'fleet', 'resetpass', '>other')
    each_proxy('cut')(scene)


ALL = [
    Fault('killed, back empty', lambda s: s.server.kill(), lambda s: s.server.restart(),
          says='connection'),
    Fault('killed, back with an old dump', lambda s: s.server.kill(),
          lambda s: s.server.restart(from_dump=True), says='connection'),
    Fault('paused', lambda s: s.server.pause(), lambda s: s.server.resume(),
          says='answer'),
    Fault('FLUSHALL', command('FLUSHALL'), nothing, silent='none'),
    Fault('SCRIPT FLUSH', command('SCRIPT', 'FLUSH'), nothing, silent='none'),
    Fault('connections cut', each_proxy('cut'), nothing, silent='none', is_cut=True),
    Fault('nothing arrives there', each_proxy('stall up'), each_proxy('heal'),
          says='answer'),
    Fault('nothing comes back', each_proxy('stall down'), each_proxy('heal'),
          says='answer'),
    Fault('replies swallowed', each_proxy('swallow down'), each_proxy('heal'),
          says='answer'),
    Fault('password changed', deny('CONFIG', 'SET', 'requirepass', 'other'),
          command('CONFIG', 'SET', 'requirepass', ''), says='NOAUTH', slow=True,
          is_cut=True),
    Fault('no right to scripts', deny('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
          command('ACL', 'SETUSER', 'default', '+@all'), says='NOPERM', slow=True,
          is_cut=True),
    Fault('no right to the channel', deny('ACL', 'SETUSER', 'default', 'resetchannels'),
          command('ACL', 'SETUSER', 'default', 'allchannels'), says='NOPERM', silent='none',
          slow=True, is_cut=True),
    Fault('wrong password', begin_wrongpass,
          command('ACL', 'SETUSER', 'fleet', 'resetpass', '>secret'), says='WRONGPASS', slow=True,
          user='fleet:secret', is_cut=True),
    Fault('key of a wrong type', begin_wrong_type('well'), command('DEL', key_of('well')),
          says='something else than a breaker lives under', silent='well'),
    Fault('key of a wrong type, open', begin_wrong_type('ill'), command('DEL', key_of('ill')),
          says='something else than a breaker lives under', silent='ill'),
    Fault('clock behind', clock_behind, nothing, silent='none'),
    Fault('OOM', command('CONFIG', 'SET', 'maxmemory', '1'),
          command('CONFIG', 'SET', 'maxmemory', '0'), says='OOM'),
    Fault('READONLY', as_replica, command('REPLICAOF', 'NO', 'ONE'), says='READONLY'),
    Fault('MASTERDOWN', as_stale_replica, command('REPLICAOF', 'NO', 'ONE'), says='MASTERDOWN'),
    Fault('NOREPLICAS', command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
          command('CONFIG', 'SET', 'min-replicas-to-write', '0'), says='NOREPLICAS'),
    Fault('MISCONF', begin_misconf, end_misconf, says='MISCONF'),
    Fault('BUSY', begin_busy, command('SCRIPT', 'KILL'), says='BUSY'),
    Fault('LOADING', begin_loading, end_loading, says='LOADING', first='connection'),
]
