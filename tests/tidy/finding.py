"""What a rule found: where, which rule, and what to do, in one sentence."""

from typing import NamedTuple


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    advice: str

    def __str__(self):
        return f'{self.path}:{self.line}: {self.rule}: {self.advice}'
