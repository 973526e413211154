"""Reads the arguments of `vllm serve`, a JSON list a line, and ends with an error on any bad one.

Run by the Python that has vLLM, from the repository's root: python -m tests.vllm.serve_arguments
"""

import json
import sys

import tests.vllm.vllm_command  # noqa: F401  (so that vLLM knows its own version)

if __name__ == "__main__":
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser(prog="vllm")
    ServeSubcommand().subparser_init(parser.add_subparsers())
    for line in sys.stdin:
        parser.parse_args(["serve", *json.loads(line)])
