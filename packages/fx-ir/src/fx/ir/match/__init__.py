"""Finding nodes and subgraphs, and rewriting what was found."""

from fx.ir.match.matcher import Match as Match
from fx.ir.match.matcher import SameOperation as SameOperation
from fx.ir.match.matcher import find_matches as find_matches
from fx.ir.match.pattern import ANY as ANY
from fx.ir.match.pattern import NodePattern as NodePattern
from fx.ir.match.pattern import PatternError as PatternError
from fx.ir.match.pattern import parse_pattern as parse_pattern
from fx.ir.match.pattern import select as select
from fx.ir.match.rewrite import Rewrite as Rewrite
from fx.ir.match.rewrite import RewriteError as RewriteError
from fx.ir.match.rewrite import rewrite as rewrite
