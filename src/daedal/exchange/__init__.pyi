# The public names of daedal.exchange and the modules that hold them (see common/public_names.py).

from daedal.exchange.fmu_export import ExportedFMU as ExportedFMU
from daedal.exchange.fmu_import import ImportedFMU as ImportedFMU

__all__: list[str]
