"""Graph breaks: where a frame may be split, and the rest of a function as a function."""

from dynamo.eval.breaks.driver import Driver as Driver
from dynamo.eval.breaks.resume import ResumePoint as ResumePoint
from dynamo.eval.breaks.resume import is_resume_code as is_resume_code
from dynamo.eval.breaks.resume import load_rest as load_rest
from dynamo.eval.breaks.resume import resume_function as resume_function
from dynamo.eval.breaks.split import operand_count as operand_count
from dynamo.eval.breaks.split import pushes as pushes
from dynamo.eval.breaks.split import splits_at as splits_at
