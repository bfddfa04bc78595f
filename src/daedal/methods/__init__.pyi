# The public names of daedal.methods and the modules that hold them (see common/public_names.py).

from daedal.methods.base import Method as Method
from daedal.methods.bdf.dassl import DASSL as DASSL
from daedal.methods.bdf.modified_bdf import ModifiedBDF as ModifiedBDF
from daedal.methods.explicit.runge_kutta import DOP853 as DOP853
from daedal.methods.explicit.runge_kutta import DOPRI5 as DOPRI5
from daedal.methods.explicit.runge_kutta import RK4 as RK4
from daedal.methods.extrapolation.extrapolation import Extrapolation as Extrapolation
from daedal.methods.extrapolation.extrapolation_sequences import extrapolation_table as extrapolation_table
from daedal.methods.extrapolation.mexx import MEXX as MEXX
from daedal.methods.half_explicit.half_explicit import HEDOP5 as HEDOP5
from daedal.methods.half_explicit.half_explicit import HEM3 as HEM3
from daedal.methods.half_explicit.half_explicit import HEM4 as HEM4
from daedal.methods.half_explicit.half_explicit import HEM5 as HEM5
from daedal.methods.half_explicit.half_explicit import PHEM56 as PHEM56
from daedal.methods.half_explicit.half_explicit import HalfExplicit as HalfExplicit
from daedal.methods.half_explicit.half_explicit import MechanicalRun as MechanicalRun  # for annotations
from daedal.methods.implicit_rk.collocation import Collocation as Collocation
from daedal.methods.implicit_rk.implicit_runge_kutta import ImplicitRungeKutta as ImplicitRungeKutta
from daedal.methods.implicit_rk.radau import Radau as Radau
from daedal.methods.multistep.multistep import Multistep as Multistep
from daedal.methods.multistep.multistep import OneLeg as OneLeg
from daedal.methods.multistep.multistep_formula import MultistepFormula as MultistepFormula
from daedal.methods.named_formulas import coefficients as coefficients
from daedal.methods.rosenbrock.rosenbrock import Rosenbrock as Rosenbrock
from daedal.methods.run import OneStepRun as OneStepRun  # for annotations
from daedal.methods.run import Run as Run  # for annotations
from daedal.methods.symplectic.rattle import RATTLE as RATTLE
from daedal.methods.symplectic.rattle import SHAKE as SHAKE
from daedal.methods.tableau import RungeKuttaTableau as RungeKuttaTableau
from daedal.methods.task import Outcome as Outcome  # for annotations

__all__: list[str]
