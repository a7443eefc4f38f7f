"""From frames, formulas and files to `SelectionData`: column kinds, designs, labels and weights."""
