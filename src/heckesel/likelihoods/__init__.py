"""One error model per file: log-likelihood, score and Hessian of each unit."""
