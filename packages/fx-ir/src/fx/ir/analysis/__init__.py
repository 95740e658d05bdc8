"""Questions about graphs that need no torch: shape, order, differences."""

from fx.ir.analysis.diff import Change as Change
from fx.ir.analysis.diff import Diff as Diff
from fx.ir.analysis.diff import diff as diff
from fx.ir.analysis.networkx import to_networkx as to_networkx
from fx.ir.analysis.stats import Stats as Stats
from fx.ir.analysis.stats import stats as stats
from fx.ir.analysis.topology import LiveRange as LiveRange
from fx.ir.analysis.topology import ancestors as ancestors
from fx.ir.analysis.topology import critical_path as critical_path
from fx.ir.analysis.topology import depths as depths
from fx.ir.analysis.topology import descendants as descendants
from fx.ir.analysis.topology import dominators as dominators
from fx.ir.analysis.topology import live_ranges as live_ranges
from fx.ir.analysis.topology import peak_live as peak_live
from fx.ir.analysis.topology import post_dominators as post_dominators
from fx.ir.analysis.topology import reaches as reaches
