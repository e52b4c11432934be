"""The layers: who may include what, and which words belong to one place only."""

import re

from finding import Finding

STANDARD = set('''
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
cinttypes climits clocale cmath compare complex concepts condition_variable csetjmp csignal cstdarg
cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution
filesystem forward_list fstream functional future initializer_list iomanip ios iosfwd iostream
istream iterator latch limits list locale map memory memory_resource mutex new numbers numeric
optional ostream queue random ranges ratio regex scoped_allocator semaphore set shared_mutex
source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream
system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility
valarray variant vector version errno.h time.h
'''.split())

# The installed headers that hold plain values only. Core uses them, so that an option or an error
# has one definition (docs/decisions/0001-core-uses-installed-value-headers.md).
VALUE_HEADERS = {'trinco/breaker_options.hpp', 'trinco/breaker_types.hpp',
                 'trinco/duration_histogram.hpp', 'trinco/error.hpp'}

# What the standard library cannot say, or not well: the CPU that a thread runs on, without a system
# call; a semaphore that loses no wakeup in any compiler's library that we build with.
PLATFORM = {('src/core/breaker/shard.hpp', 'sys/rseq.h'),
            ('src/core/wakeup.hpp', 'semaphore.h')}

# Foreign headers, and the only places that may include them.
FOREIGN = [
    (r'boost/', ['src/wire/http1/', 'src/store/consul/consul_wire.cpp']),
    (r'openssl/', ['src/net/']),
    (r'hiredis', ['src/wire/resp']),
    (r'nghttp2', ['src/wire/http2/', 'tests/wire/http2_peer.cpp']),
    (r'google/protobuf/', ['src/store/etcd/']),
    (r'sqlite3', ['src/store/local/']),
    (r'curl/', ['examples/']),
    (r'toml\+\+/', ['apps/trinco/config/']),
    (r'gtest/|gmock/|rapidcheck', ['tests/']),
    (r'benchmark/', ['bench/']),
]

STREAMS = 'its streams and their locale would be made at each start of trinco; write to descriptors'

# (folder or file, includes it must not have, what to do)
FORBIDDEN = [
    ('src/', r'^iostream$', STREAMS),
    ('apps/', r'^iostream$', STREAMS),
    ('src/store/', r'^(lock|breaker)/', 'a store knows neither src/lock nor src/breaker'),
    ('src/breaker/', r'^lock/', 'breakers do not use locks'),
    ('src/lock/', r'^breaker/', 'locks do not use breakers'),
    ('src/wire/', r'^(net|store|lock|breaker)/', 'a codec knows bytes only'),
    ('src/net/', r'^(store|lock|breaker)/', 'connections do not know what they are for'),
    ('src/core/breaker/local', r'record', 'the local breaker and the record meet in series only'),
    ('src/core/breaker/record', r'/local', 'the record and the local breaker meet in series only'),
    ('src/breaker/fleet_sync', r'window', 'fleet_sync gets counts; windows are its caller\'s'),
]

LEASE_FILES = re.compile(r'src/core/lock/lease\w*\.[hc]pp$')
RENEWAL = re.compile(r'\b\w*ttl\w*(?:\(\))?\s*/\s*\d'
                     r'|\brenew(?:al)?_(?:every|after|interval|period)\b')
BARE_QUOTED = re.compile(r'(?<![:\w])quoted\(')
WINDOW_TYPE = re.compile(r'\b\w+_window\b|\bwindow\s*[<&*{]')


def check(path, source):
    if not re.match(r'(src|include|apps|examples|bench|tests)/', path):
        return
    yield from _includes(path, source)
    yield from _words(path, source)


def _includes(path, source):
    for line, quote, name in source.includes:
        advice = _advice_on_include(path, quote == '<' and name in STANDARD, name)
        if advice:
            yield Finding(path, line, 'layers', f'must not include {name}: {advice}')


def _advice_on_include(path, is_standard, name):
    if path.startswith('src/core/'):
        if not (is_standard or name.startswith('core/') or name in VALUE_HEADERS
                or (path, name) in PLATFORM):
            return 'src/core uses the standard library, itself and the value headers only'
    if path.startswith('include/'):
        if not (is_standard or name.startswith('trinco/')):
            return 'installed headers use the standard library and each other only'
    for pattern, places in FOREIGN:
        if re.match(pattern, name):
            if not any(path.startswith(place) for place in places):
                return 'only ' + ' and '.join(places) + ' may'
            break
    for place, pattern, advice in FORBIDDEN:
        if path.startswith(place) and re.search(pattern, name):
            return advice
    if path.startswith(('src/', 'include/', 'apps/')) and not path.startswith('src/sim/'):
        if name.startswith('sim/'):
            return 'the simulator is for tests'
    return None


def _words(path, source):
    if not path.startswith('src/core/quoted.'):
        for match in BARE_QUOTED.finditer(source.code):
            yield Finding(path, source.line_of(match.start()), 'layers',
                          'say detail::quoted: of a std::string GCC 14 finds std::quoted as well')
    if path.startswith('src/breaker/fleet_sync'):
        for match in WINDOW_TYPE.finditer(source.code):
            yield Finding(path, source.line_of(match.start()), 'layers',
                          'fleet_sync must not touch a window: pass counts in')
    if path.startswith('src/') and not path.startswith('src/sim/') and not LEASE_FILES.match(path):
        for match in RENEWAL.finditer(source.code):
            yield Finding(path, source.line_of(match.start()), 'layers',
                          'renewal timing lives in src/core/lock/lease only: ask the lease')
