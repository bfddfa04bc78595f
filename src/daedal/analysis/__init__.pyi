# The public names of daedal.analysis and the modules that hold them (see common/public_names.py).

from daedal.analysis import order_conditions as order_conditions
from daedal.analysis.advice import Advice as Advice
from daedal.analysis.certificate import Certificate as Certificate
from daedal.analysis.certificate import certify as certify
from daedal.analysis.comparison import ComparedRun as ComparedRun
from daedal.analysis.comparison import Comparison as Comparison
from daedal.analysis.conditioning.conditioning_result import Conditioning as Conditioning
from daedal.analysis.conditioning.constants import InitialLayer as InitialLayer  # for annotations
from daedal.analysis.conditioning.constants import PerturbedIndex2 as PerturbedIndex2  # for annotations
from daedal.analysis.conditioning.measure import analyse_conditioning as analyse_conditioning
from daedal.analysis.index import LocalIndex as LocalIndex  # for annotations
from daedal.analysis.linear_models.linear_model import LinearMode as LinearMode  # for annotations
from daedal.analysis.linear_models.linear_model import LinearModel as LinearModel
from daedal.analysis.method_analysis.analyse_method import MultistepAnalysis as MultistepAnalysis
from daedal.analysis.method_analysis.analyse_method import RungeKuttaAnalysis as RungeKuttaAnalysis
from daedal.analysis.method_analysis.analyse_method import analyse_method as analyse_method
from daedal.analysis.method_analysis.predictions import MethodAnalysis as MethodAnalysis
from daedal.analysis.method_analysis.predictions import Prediction as Prediction
from daedal.analysis.problem_page.analysis_page import Analysis as Analysis
from daedal.analysis.problem_page.block_picture import BlockLayout as BlockLayout  # for annotations
from daedal.common.tabular import Tabular as Tabular  # for annotations
from daedal.initial.local_structure import StructureAlong as StructureAlong
from daedal.initial.local_structure import analyse_along as analyse_along

__all__: list[str]
