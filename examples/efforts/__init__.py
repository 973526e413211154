"""One tiny model at two efforts: it answers at once, or writes down its steps first."""
