"""From selection and residuals to what is predicted for the unselected."""
