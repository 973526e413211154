"""The `messplus:` section of the proxy's configuration: what may stand there, and its checks."""
