"""Labels of methods on pages and in figures."""

LABELS = {
    "auto": "auto",
    "old_auto": "old auto",
    "heckman_two_step": "two-step",
    "heckman_joint": "joint",
    "spline_joint": "profile",
    "blind_two_head": "blind two-head",
    "deep_ensemble": "deep ensemble",
    "weighted_ensemble": "weighted ensemble",
    "mc_dropout": "MC dropout",
    "gp": "GP",
    "oracle": "oracle",
    "skyline": "skyline",
}
