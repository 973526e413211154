"""The certificate: how far the log proves that a promise was kept, whenever it is looked at."""
