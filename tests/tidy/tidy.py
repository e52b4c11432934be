#!/usr/bin/env python3
"""Checks the source tree against the rules of the project; see CONTRIBUTING.md.

    tests/tidy/tidy.py [ROOT]

Prints a line for each finding (file:line: rule: what to do) and fails when there is one.
"""

import os
import pathlib
import sys

import layer_rules
import reference_rules
import text_rules
from cpp_source import Source
from finding import Finding

SKIPPED_FOLDERS = {'.git', '.cache', 'build', '__pycache__', '.vscode', '.idea'}


def read_tree(root):
    """All files of the tree as path -> text; None for what is not UTF-8."""
    files = {}
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(set(subfolders) - SKIPPED_FOLDERS)
        for name in names:
            path = pathlib.Path(folder, name)
            try:
                text = path.read_bytes().decode('utf-8')
            except UnicodeDecodeError:
                text = None
            files[path.relative_to(root).as_posix()] = text
    return files


def check(files):
    """Yields the findings on a tree given as path -> text."""
    for path, text in sorted(files.items()):
        if text is None:
            yield Finding(path, 1, 'text', 'only UTF-8 text belongs here')
            continue
        source = Source(text) if path.endswith(text_rules.CPP) else None
        yield from text_rules.check(path, text, source)
        if source is not None:
            yield from layer_rules.check(path, source)
    yield from reference_rules.check({p: t for p, t in files.items() if t is not None})


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]
    files = read_tree(root)
    findings = list(check(files))
    for finding in findings:
        print(finding)
    if not any(path.startswith('src/') for path in files):
        sys.exit(f'tidy: {root} does not look like the source tree')
    print(f'tidy: {len(files)} files, {len(findings)} findings')
    sys.exit(1 if findings else 0)


if __name__ == '__main__':
    main()
