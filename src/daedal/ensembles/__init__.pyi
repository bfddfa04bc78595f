# The public names of daedal.ensembles and the modules that hold them (see common/public_names.py).

from daedal.ensembles.gpu import GPU as GPU
from daedal.ensembles.gpu import solve_on_gpu as solve_on_gpu
from daedal.ensembles.gpu_model import GPUResults as GPUResults
from daedal.ensembles.reductions import Aggregator as Aggregator
from daedal.ensembles.reductions import Histogram as Histogram
from daedal.ensembles.reductions import Quantiles as Quantiles
from daedal.ensembles.sampling import sample as sample

__all__: list[str]
