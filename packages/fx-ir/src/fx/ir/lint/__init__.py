"""Checks of every invariant of a graph, one rule each."""

from fx.ir.lint.check import LintError as LintError
from fx.ir.lint.check import check as check
from fx.ir.lint.rules import RULES as RULES
from fx.ir.lint.rules import Breach as Breach
