"""Readable guards with a native check: is cached work still valid for these values?

Give `CheckFunctionManager` guards (`Source.make_guard` with a `GuardBuilder` method) and the values at capture
(`GuardScope`); it gives back a check in two forms that always agree: a Python function that a person can read, and a
native program that other packages reach through the capsule ``dynamo.guards._check.C_API``.
"""

from dynamo.guards._unbound import UNBOUND as UNBOUND
from dynamo.guards.builder import GuardBuilder as GuardBuilder
from dynamo.guards.builder import is_constant as is_constant
from dynamo.guards.check import CheckFunctionManager as CheckFunctionManager
from dynamo.guards.errors import GuardBuildError as GuardBuildError
from dynamo.guards.errors import GuardError as GuardError
from dynamo.guards.scope import GuardScope as GuardScope
from dynamo.guards.sources import AmbientSource as AmbientSource
from dynamo.guards.sources import AttrSource as AttrSource
from dynamo.guards.sources import BuiltinSource as BuiltinSource
from dynamo.guards.sources import CellSource as CellSource
from dynamo.guards.sources import ClassAttrSource as ClassAttrSource
from dynamo.guards.sources import ClosureSource as ClosureSource
from dynamo.guards.sources import ConstantSource as ConstantSource
from dynamo.guards.sources import DictKeySource as DictKeySource
from dynamo.guards.sources import FunctionPartSource as FunctionPartSource
from dynamo.guards.sources import GlobalSource as GlobalSource
from dynamo.guards.sources import Guard as Guard
from dynamo.guards.sources import GuardSource as GuardSource
from dynamo.guards.sources import InstanceDictSource as InstanceDictSource
from dynamo.guards.sources import ItemSource as ItemSource
from dynamo.guards.sources import LocalSource as LocalSource
from dynamo.guards.sources import NNModuleSource as NNModuleSource
from dynamo.guards.sources import Source as Source
from dynamo.guards.sources import SuperSource as SuperSource
from dynamo.guards.sources import TupleIteratorItemSource as TupleIteratorItemSource
from dynamo.guards.sources import TypeSource as TypeSource
from dynamo.guards.sources import WeakRefCallSource as WeakRefCallSource
from dynamo.guards.sources import closure_cell_source as closure_cell_source
from dynamo.guards.sources import code_source as code_source
from dynamo.guards.sources import default_source as default_source
from dynamo.guards.sources import keyword_default_source as keyword_default_source
from dynamo.guards.status import NativeStatus as NativeStatus
from dynamo.guards.status import native_status as native_status
from dynamo.guards.why import Failure as Failure
