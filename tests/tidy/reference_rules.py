"""No dead files: each is built, included, added or mentioned by another one. And no dead links."""

import posixpath
import re

from finding import Finding

# What people and tools open by its name.
ENTRIES = {'README.md', 'LICENSE', 'Makefile', 'CMakeLists.txt', 'CMakePresets.json', '.gitignore',
           '.clang-format', '.clang-tidy', '.ci/run'}

TEST = re.compile(r'^(?:RC_GTEST_PROP|TYPED_TEST|TEST(?:_[FP])?)\(\s*(\w+),\s*(\w+)', re.M)


def check(files):
    """files: path -> text."""
    for path in sorted(files):
        if path not in ENTRIES and not _is_used(path, files):
            yield Finding(path, 1, 'dead', _advice(path))
        if path.endswith('.md'):
            yield from _dead_links(path, files)
    yield from _tests_that_do_not_exist(files)


def _dead_links(path, files):
    folder = posixpath.dirname(path)
    for match in re.finditer(r'\]\((?!\w+:)([^)#\s]+)', files[path]):
        target = posixpath.normpath(posixpath.join(folder, match.group(1)))
        if target not in files and not any(other.startswith(target + '/') for other in files):
            yield Finding(path, files[path].count('\n', 0, match.start()) + 1, 'link',
                          f'there is no {target}: correct the link')


def _tests_that_do_not_exist(files):
    """A guarantee must name tests which are there."""
    path = 'GUARANTEES.md'
    tests = set()
    for other, text in files.items():
        if other.startswith('tests/'):
            tests.update(TEST.findall(text))
    for match in re.finditer(r'`([A-Z]\w+)\.(\w+)`', files.get(path, '')):
        if match.groups() not in tests:
            yield Finding(path, files[path].count('\n', 0, match.start()) + 1, 'guarantee',
                          f'there is no test {match.group(0)}: name one that proves it')


def _is_used(path, files):
    folder, name = posixpath.split(path)
    if name == 'CMakeLists.txt':
        return _is_added(folder, files)
    if path.endswith('.hpp'):
        used = re.compile(r'#\s*include\s*["<](?:[\w./-]*/)?' + re.escape(name) + '[">]')
        return any(name in text and used.search(text)
                   for other, text in files.items() if other != path)
    mention = re.compile(r'(?<![\w-])' + re.escape(name) + r'(?!\w)')
    if path.endswith('.cpp'):
        return any(mention.search(text) for other, text in files.items()
                   if posixpath.basename(other) == 'CMakeLists.txt'
                   and path.startswith(posixpath.dirname(other)))
    if path.endswith(('.py', '.cmake')):    # imported or included without the ending
        name = name.rsplit('.', 1)[0]
        mention = re.compile(r'(?<![\w-])' + re.escape(name) + r'(?!\w)')
    return any(name in text and mention.search(text)
               for other, text in files.items() if other != path)


def _is_added(folder, files):
    """Whether a CMakeLists.txt further up adds this folder."""
    parent = posixpath.dirname(folder)
    while True:
        text = files.get(posixpath.join(parent, 'CMakeLists.txt'), '')
        below = posixpath.relpath(folder, parent or '.')
        if re.search(r'add_subdirectory\(\s*' + re.escape(below) + r'\s*\)', text):
            return True
        # A project of its own, which a test builds.
        if f'_SOURCE_DIR}}/{below}\n' in text:
            return True
        if not parent:
            return False
        parent = posixpath.dirname(parent)


def _advice(path):
    if path.endswith('CMakeLists.txt'):
        return 'no CMakeLists.txt above adds this folder: add it, or delete it'
    if path.endswith('.cpp'):
        return 'no CMakeLists.txt builds this file: add it, or delete it'
    if path.endswith('.hpp'):
        return 'nobody includes this header: use it, or delete it'
    return 'no other file mentions this one: link to it, or delete it'
