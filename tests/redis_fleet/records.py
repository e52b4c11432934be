"""The record of a breaker as it is in Redis: what src/store/redis/lua/record.lua calls `numbers`,
to look at and to change behind everybody's back."""

import struct

NUMBERS = ('clock skew era rev state ends since backoff_level over over_ends options_stamp '
           'configured_stamp set_ends suspect_since reclaimed set_aside_at taken_over_at forgot_at '
           'live_instances swept_at window_gen results_gen forgiven_gen').split()
# Microseconds of the record's clock; 0: never. An era is one, too: of when it began.
TIMES = ('era ends since over_ends options_stamp configured_stamp set_ends suspect_since '
         'set_aside_at taken_over_at forgot_at swept_at').split()
LAYOUT = '<%dd' % len(NUMBERS)
CLOSED, OPEN = 0, 1


def key_of(breaker):
    return 'trinco:1:default:{%s}' % breaker


def numbers(server, breaker):
    """None: there is no record. `server`: anything that has `call`."""
    packed = server.call('HGET', key_of(breaker), 'numbers')
    return dict(zip(NUMBERS, struct.unpack(LAYOUT, packed))) if packed else None


def set_ahead(server, breaker, by, only=None):
    """The record is of a server whose clock was ahead by so many microseconds, or only one field
    of it. A transaction, since the fleet goes on writing it."""
    while True:
        server.call('WATCH', key_of(breaker))
        now = numbers(server, breaker)
        for name in [only] if only else ['clock'] + TIMES:
            now[name] += by if now[name] else 0
        server.call('MULTI')
        server.call('HSET', key_of(breaker), 'numbers',
                    struct.pack(LAYOUT, *(now[name] for name in NUMBERS)))
        if server.call('EXEC'):
            return
