# The public names of daedal.hybrid and the modules that hold them (see common/public_names.py).

from daedal.hybrid.hybrid_problem import HybridProblem as HybridProblem
from daedal.hybrid.hybrid_problem import Mode as Mode
from daedal.hybrid.hybrid_problem import Transition as Transition
from daedal.hybrid.models.breaking import breaking_joint as breaking_joint
from daedal.hybrid.models.contact_equations import Contact as Contact
from daedal.hybrid.models.contact_modes import ContactHistory as ContactHistory  # for annotations
from daedal.hybrid.models.contact_modes import ContactRecord as ContactRecord  # for annotations
from daedal.hybrid.models.contact_modes import StoredContacts as StoredContacts  # for annotations
from daedal.hybrid.models.elastoplastic import ElastoPlastic as ElastoPlastic
from daedal.hybrid.models.elastoplastic import elastoplastic_contact as elastoplastic_contact
from daedal.hybrid.models.filippov import Filippov as Filippov
from daedal.hybrid.models.friction import ContactState as ContactState
from daedal.hybrid.models.friction import Friction as Friction
from daedal.hybrid.models.impact import Impact as Impact
from daedal.hybrid.models.impact import ImpactResult as ImpactResult
from daedal.hybrid.models.unilateral import UnilateralProblem as UnilateralProblem
from daedal.hybrid.segments import Derived as Derived  # for annotations
from daedal.hybrid.segments import HybridEvent as HybridEvent
from daedal.hybrid.segments import HybridSegment as HybridSegment  # for annotations
from daedal.problems.named_inputs import Inputs as Inputs  # for annotations

__all__: list[str]
