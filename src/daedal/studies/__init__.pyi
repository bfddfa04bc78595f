# The public names of daedal.studies and the modules that hold them (see common/public_names.py).

from daedal.studies import reproduce as reproduce
from daedal.studies.general_linear_methods import GeneralLinearMethod as GeneralLinearMethod
from daedal.studies.general_linear_methods import GeneralLinearResult as GeneralLinearResult
from daedal.studies.general_linear_methods import general_linear as general_linear
from daedal.studies.given_grids import ModifiedEulerResult as ModifiedEulerResult
from daedal.studies.given_grids import corrected_multipliers as corrected_multipliers
from daedal.studies.given_grids import modified_euler as modified_euler

__all__: list[str]
