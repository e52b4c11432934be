"""Rules on the text of every file: sizes, width, words that must not be there."""

import ast
import re

from finding import Finding

FILE_LINES = 500
FUNCTION_LINES = 70
WIDTH = 100

CPP = ('.hpp', '.cpp')
GO = ('.go', 'go.mod')    # indented with tabs by Go's own formatter
# The torture and the fleet's proofs are real processes in real time, all of it.
TESTS_ON_REAL_TIME = re.compile(r'^tests/(?:torture|redis_fleet|etcd_fleet)/|_realtime\w*\.[a-z]+$')
# The words are split so that this file does not find itself.
UNFINISHED = re.compile(r'\b(?:TO' r'DO|FIX' r'ME|XX' r'X|HA' r'CK)\b')
SLEEP = re.compile(r'\b(?:sleep_f' r'or|sleep_un' r'til|usl' r'eep|(?:clock_)?nanosl' r'eep)\b'
                   r'|\bsleep\s*\(')
SET_CLOCK = re.compile(r'\b(?:clock_set' r'time|settime' r'ofday|clock_adj' r'time|adj' r'timex?)\b'
                       r'|\bdate\s+(?:-s\b|--s' r'et)|\btimedate' r'ctl\b|\bhw' r'clock\b')
MACHINE_PATH = re.compile(r'(?<![\w.}/$*~-])/(?:work|root|home|Users|tmp)/\w')
HOST_OF_URL = re.compile(r'\bhttps?://([\w-]+(?:\.[\w-]+)+)')
# Names that are reserved for examples and tests, this machine, and the home of the license.
HARMLESS_HOST = re.compile(r'(?:^|\.)example\.(?:com|org|net)$'
                           r'|\.(?:example|invalid|test|localhost)$'
                           r'|^127\.\d+\.\d+\.\d+$|^www\.apache\.org$')


def check(path, text, source):
    yield from _size(path, text)
    yield from _lines(path, text)
    yield from _functions(path, text, source)
    if path.endswith('.hpp'):
        yield from _pragma_once(path, text)
    if source is not None:
        yield from _sleep(path, source.code)
    elif path.endswith('.py'):
        yield from _sleep(path, text)


def _finds(path, pattern, text, rule, advice):
    for match in pattern.finditer(text):
        yield Finding(path, text.count('\n', 0, match.start()) + 1, rule, advice)


def _size(path, text):
    lines = text.count('\n')
    if lines > FILE_LINES and path != 'LICENSE':
        yield Finding(path, lines, 'size', f'{lines} lines are over {FILE_LINES}: split the file')


def _lines(path, text):
    if path.endswith('go.sum'):    # written by Go
        return
    is_prose = path.endswith('.md')
    for number, line in enumerate(text.split('\n'), 1):
        if len(line) > WIDTH and not (is_prose and (line.startswith('|') or '](' in line)):
            yield Finding(path, number, 'width', f'{len(line)} characters, over {WIDTH}: wrap it')
        if '\t' in line and path != 'Makefile' and not path.endswith(GO):
            yield Finding(path, number, 'tabs', 'indent with spaces')
        if line != line.rstrip():
            yield Finding(path, number, 'blanks', 'remove the blanks at the end of the line')
    if text and not text.endswith('\n'):
        yield Finding(path, text.count('\n') + 1, 'blanks', 'end the file with a newline')
    yield from _finds(path, UNFINISHED, text, 'unfinished', 'do it now, or file an issue')
    yield from _finds(path, SET_CLOCK, text, 'clock', 'inject time; never set the system\'s clock')
    yield from _finds(path, MACHINE_PATH, text, 'paths', 'no path of one machine; make it relative')
    for match in HOST_OF_URL.finditer(text):
        if not HARMLESS_HOST.search(match.group(1)):
            yield Finding(path, text.count('\n', 0, match.start()) + 1, 'hosts',
                          'use a host under example.com, or localhost')


def _functions(path, text, source):
    spans = []
    if source is not None:
        spans = source.functions()
    elif path.endswith('.py'):
        spans = [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
                 if isinstance(node, ast.FunctionDef)]
    for first, last in spans:
        lines = last - first + 1
        if lines > FUNCTION_LINES:
            yield Finding(path, first, 'function',
                          f'{lines} lines are over {FUNCTION_LINES}: split the function')


def _pragma_once(path, text):
    for number, line in enumerate(text.split('\n'), 1):
        if line.startswith('#'):
            if line.strip() != '#pragma once':
                yield Finding(path, number, 'header', 'begin with #pragma once')
            return
    yield Finding(path, 1, 'header', 'begin with #pragma once')


def _sleep(path, code):
    if path.startswith(('tests/', 'src/', 'include/')) and not TESTS_ON_REAL_TIME.search(path):
        yield from _finds(path, SLEEP, code, 'sleep',
                          'inject time, or name the test *_realtime_test and label it realtime')
