"""The two tools of the agent: a price list and a calculator."""

import ast
import json
import operator
from collections.abc import Callable, Mapping
from typing import Any

UNKNOWN = "unknown"
"""What a tool says to what it does not understand."""
LONGEST = 100
"""Characters of an expression that is calculated."""


def _schema(name: str, argument: str, description: str) -> dict[str, Any]:
    """Describe a tool with one argument of text, as OpenAI's API does."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string"}},
        "required": [argument],
    }
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


PRICE = _schema("price", "item", "The price of one piece of an item in the shop.")
CALCULATE = _schema("calculate", "expression", "The value of a sum of products, such as 3*27+4*18.")
TOOLS = [PRICE, CALCULATE]

_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def price(item: str, prices: Mapping[str, int]) -> str:
    """Look up what one piece of an item costs."""
    return str(prices.get(item.strip(), UNKNOWN))


def calculate(expression: str) -> str:
    """Work out an expression of whole numbers with ``+``, ``-`` and ``*``."""
    try:
        if len(expression) > LONGEST:
            return UNKNOWN
        return str(_value(ast.parse(expression.strip(), mode="eval").body))
    except (SyntaxError, ValueError, RecursionError):
        return UNKNOWN


def _value(node: ast.expr) -> int:
    """Return the value of a parsed expression. Raises ValueError for what is no arithmetic."""
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left, operation, right) if type(operation) in _OPERATIONS:
            return _OPERATIONS[type(operation)](_value(left), _value(right))
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand)
    raise ValueError(ast.unparse(node))


def run(name: str, arguments: str, prices: Mapping[str, int]) -> str:
    """Run the tool that a model calls, with its arguments as JSON, in a shop of those prices."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return UNKNOWN
    match name, given:
        case "price", {"item": str(item)}:
            return price(item, prices)
        case "calculate", {"expression": str(expression)}:
            return calculate(expression)
    return UNKNOWN
