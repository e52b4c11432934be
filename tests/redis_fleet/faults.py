"""What may happen to a server, as pairs of deeds: how it begins and how it ends."""

import os
import threading

from servers import Client, Refused


class Fault:
    """`says`: what the store must say about itself meanwhile, where it is told why. `silent`: for
    which of the breakers it does not answer: 'all', 'well' or 'none'. `slow`: those who were denied
    ask again only every 5 s."""

    def __init__(self, name, begin, end, says='', silent='all', slow=False):
        self.name, self.begin, self.end, self.says = name, begin, end, says
        self.silent, self.slow = silent, slow


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


def begin_wrong_type(scene):
    scene.server.call('DEL', 'trinco:1:default:{well}')
    scene.server.call('SET', 'trinco:1:default:{well}', 'not a record')


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


def slow_load(scene):
    """It is back, and for a while only says that it is loading."""
    s = scene.server
    s.call('DEBUG', 'POPULATE', '400', 'filler', '2000')
    s.dump()
    s.kill()
    s.settings += ['--key-load-delay', '3000', '--loading-process-events-interval-bytes', '1024']


ALL = [
    Fault('killed, back empty', lambda s: s.server.kill(), lambda s: s.server.restart(),
          says='connection'),
    Fault('killed, back with an old dump', lambda s: s.server.kill(),
          lambda s: s.server.restart(from_dump=True), says='connection'),
    Fault('paused', lambda s: s.server.pause(), lambda s: s.server.resume(),
          says='answer'),
    Fault('FLUSHALL', command('FLUSHALL'), nothing, silent='none'),
    Fault('SCRIPT FLUSH', command('SCRIPT', 'FLUSH'), nothing, silent='none'),
    Fault('connections cut', each_proxy('cut'), nothing, silent='none'),
    Fault('nothing arrives there', each_proxy('stall up'), each_proxy('heal'),
          says='answer'),
    Fault('nothing comes back', each_proxy('stall down'), each_proxy('heal'),
          says='answer'),
    Fault('replies swallowed', each_proxy('swallow down'), each_proxy('heal'),
          says='answer'),
    Fault('password changed', deny('CONFIG', 'SET', 'requirepass', 'other'),
          command('CONFIG', 'SET', 'requirepass', ''), says='NOAUTH', slow=True),
    Fault('no right to scripts', deny('ACL', 'SETUSER', 'default', '-evalsha', '-eval'),
          command('ACL', 'SETUSER', 'default', '+@all'), says='NOPERM', slow=True),
    Fault('no right to the channel', deny('ACL', 'SETUSER', 'default', 'resetchannels'),
          command('ACL', 'SETUSER', 'default', 'allchannels'), says='NOPERM', silent='none',
          slow=True),
    Fault('key of a wrong type', begin_wrong_type, command('DEL', 'trinco:1:default:{well}'),
          says='something else than a breaker lives under', silent='well'),
    Fault('OOM', command('CONFIG', 'SET', 'maxmemory', '1'),
          command('CONFIG', 'SET', 'maxmemory', '0'), says='OOM'),
    Fault('READONLY', as_replica, command('REPLICAOF', 'NO', 'ONE'), says='READONLY'),
    Fault('MASTERDOWN', as_stale_replica, command('REPLICAOF', 'NO', 'ONE'), says='MASTERDOWN'),
    Fault('NOREPLICAS', command('CONFIG', 'SET', 'min-replicas-to-write', '1'),
          command('CONFIG', 'SET', 'min-replicas-to-write', '0'), says='NOREPLICAS'),
    Fault('MISCONF', begin_misconf, end_misconf, says='MISCONF'),
    Fault('BUSY', begin_busy, command('SCRIPT', 'KILL'), says='BUSY'),
    Fault('LOADING', slow_load, lambda s: s.server.restart(from_dump=True), says='connection'),
]
