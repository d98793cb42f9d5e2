"""First-order methods on value vectors, one algorithm box a file."""

from arnpg.methods.crpo import CRPO
from arnpg.methods.epd import EPD
from arnpg.methods.focops import FOCOPS
from arnpg.methods.imd import IMD
from arnpg.methods.mo_npg import MONPG
from arnpg.methods.npg_pd import NPGPD
from arnpg.methods.omda import OMDA, OMDAState
from arnpg.methods.steady_epd import SteadyEPD

__all__ = ["CRPO", "EPD", "FOCOPS", "IMD", "MONPG", "NPGPD", "OMDA", "OMDAState", "SteadyEPD"]
