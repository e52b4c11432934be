"""Reads C++ just well enough for the rules: comments, strings, includes and function bodies."""

import bisect
import re

_TOKEN = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'",
    re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.MULTILINE)
_TEMPLATE = re.compile(r'template\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>')


def _spaces(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


class Source:
    """One C++ file. `code` is its text with comments, literals and directives made blank."""

    def __init__(self, text):
        self.text = text
        blank = _TOKEN.sub(_spaces, text)
        self.code = _DIRECTIVE.sub(_spaces, blank)
        self._starts = [0] + [m.end() for m in re.finditer('\n', text)]
        # A directive that stands in a comment or a string is none.
        self.includes = [(self.line_of(m.start(1)), m.group(1), m.group(2))
                         for m in _INCLUDE.finditer(text) if '#' in blank[m.start():m.end()]]

    def line_of(self, position):
        return bisect.bisect_right(self._starts, position)

    def functions(self):
        """Yields (first line, last line) of every function that is defined outside of others."""
        return _functions(self.code, self.line_of)


def _kind_of_brace(head):
    """What `{` opens after `head`, the text since the last statement: a scope, a function's body, a
    braced member in a constructor's list of initialisers, or something else."""
    plain = re.sub(r'\[\[.*?\]\]|alignas\s*\([^)]*\)', ' ', _TEMPLATE.sub(' ', head)).strip()
    if re.match(r'(inline\s+)?namespace\b|extern\s*$', plain):
        return 'scope'
    if re.match(r'(class|struct|union)\b', plain):
        return 'scope'
    if '(' not in plain or plain.endswith('='):
        return 'other'
    depth, closed = 0, False
    for i, c in enumerate(plain):
        depth += (c == '(') - (c == ')')
        closed = closed or c == ')'
        is_colon = c == ':' and plain[i - 1] != ':' and plain[i + 1:i + 2] != ':'
        if is_colon and closed and depth == 0:
            return 'initialiser' if re.search(r'[\w>]$', plain) else 'body'
    return 'body'


def _functions(code, line_of):
    head = 0
    inside, inner_kind = 0, ''
    for match in re.finditer(r'[{};]|\b(?:public|private|protected)\s*:', code):
        c = match.group(0)
        if inside:
            inside += (c == '{') - (c == '}')
            if inside:
                continue
            if inner_kind == 'body':
                start = head + len(code[head:]) - len(code[head:].lstrip())
                yield line_of(start), line_of(match.start())
            if inner_kind == 'initialiser':
                continue
            head = match.end()
        elif c == '{':
            kind = _kind_of_brace(code[head:match.start()])
            if kind == 'scope':
                head = match.end()
            else:
                inside, inner_kind = 1, kind
        else:
            head = match.end()
