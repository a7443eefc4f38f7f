"""What the pages and figures call each method."""

LABELS = {
    "deep_ensemble": "deep ensemble",
    "mc_dropout": "MC dropout",
    "gp": "GP",
    "weighted_ensemble": "weighted ensemble",
    "blind_two_head": "blind two-head",
    "heckman_joint": "joint",
    "heckman_two_step": "two-step",
    "heckman_averaged": "averaged",
    "heckman_auto": "auto",
    "heckman_outcome": "outcome likelihood",
    "oracle": "oracle",
    "skyline": "skyline",
    "heckman_profile": "profile",
    "spline_joint": "spline",
    "heckman_joint_t": "joint, t errors",
    "heckman_two_step_open": "two-step, open",
    "heckman_joint_open": "joint, open",
    "heckman_two_step_paper": "two-step, paper",
    "skyline_paper": "skyline, paper",
    "identify": "`hk.identify`",
}
