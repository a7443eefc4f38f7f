"""Labels of methods on pages and in figures: those of the library, and variants by options."""

from heckesel.methods import METHODS

LABELS = {name: method.label for name, method in METHODS.items()} | {
    "heckman_joint_t": "joint, t errors",
    "heckman_two_step_open": "two-step, open",
    "heckman_joint_open": "joint, open",
    "heckman_two_step_paper": "two-step, paper",
    "skyline_paper": "skyline, paper",
    "identify": "`hk.identify`",
}
