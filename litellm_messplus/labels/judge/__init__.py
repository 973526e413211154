"""A judge: a model that grades answers in the background, on a sample, within a budget. Independent
of how it is called and where its labels are kept."""
