"""A judge: a model that grades answers in the background, on a sample, within a budget. Knows
neither how it is called nor where its labels are kept."""
