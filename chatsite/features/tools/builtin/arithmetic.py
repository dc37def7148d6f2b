"""The tool `calculate`: arithmetic on exact fractions, without eval.

The expression is parsed by Python and walked; only what stands here is carried out, on
numbers of a bounded size.
"""

import ast
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from langchain_core.tools import ToolException, tool

MAX_CHARS, MAX_DEPTH = 500, 50
# Bits of numerator and denominator of every intermediate result: 1,200 digits.
MAX_BITS = 4_096
DIGITS = 15
OTHER = "it has something else than numbers and signs"

SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**", "π": "pi"})
# The only text that Python's parser gets.
KNOWN = re.compile(r"[\w\s.,()+\-*/%]*", re.ASCII)
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
CONSTANTS = {"pi": Fraction(math.pi), "e": Fraction(math.e)}


@tool(parse_docstring=True)
async def calculate(expression: str) -> str:
    """Calculate a number exactly.

    Knows + - * / // % **, parentheses, pi, e and abs, min, max, round, floor, ceil,
    sqrt, exp, log, log10, log2, sin, cos, tan.

    Args:
        expression: For example 12 * (3 + 4), 1.19 ** 5 or sqrt(2).
    """
    return work_out(expression)


def work_out(expression: str) -> str:
    """Return the value in digits. Raises ToolException in words for a model."""
    try:
        return write(evaluate(expression))
    except ZeroDivisionError:
        raise ToolException("That divides by zero.") from None
    except (TypeError, ValueError, OverflowError, SyntaxError) as error:
        words = str(error) if type(error) is ValueError else "it is no arithmetic"
        text = f"{expression[:80]!r} can't be calculated: {words}."
        raise ToolException(text) from None


def evaluate(expression: str) -> Fraction:
    """Return the value of an expression, irrational ones as exact as a float.

    Raises ValueError for what is no arithmetic or too large, and what Python's own
    functions raise: ZeroDivisionError, OverflowError, TypeError, SyntaxError.
    """
    text = unicodedata.normalize("NFKC", expression).translate(SIGNS).strip(" \n=")
    if len(text) > MAX_CHARS:
        raise ValueError(f"it has more than {MAX_CHARS} characters")
    if not re.search("[a-z]", text):
        # With letters, commas stand between the arguments of a function.
        text = THOUSANDS.sub("", text)
    if not KNOWN.fullmatch(text):
        raise ValueError("it is no arithmetic")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (MemoryError, RecursionError):
        raise ValueError("it is nested too deep") from None
    return _walk(tree.body, MAX_DEPTH)


def _walk(node: ast.AST, depth: int) -> Fraction:
    if not depth:
        raise ValueError("it is nested too deep")
    if type(node) not in NODES:
        raise ValueError(OTHER)
    return _bounded(NODES[type(node)](node, depth - 1))


def _read_number(node: ast.Constant, depth: int) -> Fraction:
    # As it was written: 0.1 is a tenth. True is no number.
    if type(node.value) not in (int, float):
        raise ValueError(OTHER)
    return Fraction(repr(node.value))


def _read_name(node: ast.Name, depth: int) -> Fraction:
    if node.id not in CONSTANTS:
        raise ValueError(f"{node.id!r} is not known")
    return CONSTANTS[node.id]


def _sign(node: ast.UnaryOp, depth: int) -> Fraction:
    if type(node.op) not in (ast.UAdd, ast.USub):
        raise ValueError(OTHER)
    value = _walk(node.operand, depth)
    return -value if isinstance(node.op, ast.USub) else value


def _combine(node: ast.BinOp, depth: int) -> Fraction:
    left, right = _walk(node.left, depth), _walk(node.right, depth)
    return Fraction(OPERATORS[type(node.op)](left, right))


def _apply(node: ast.Call, depth: int) -> Fraction:
    name = getattr(node.func, "id", "")
    if name not in FUNCTIONS or node.keywords:
        raise ValueError(f"{name or 'that'!r} is not known")
    values = [_walk(each, depth) for each in node.args]
    return Fraction(FUNCTIONS[name](*values))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        found = float(base) ** float(exponent)
        if isinstance(found, complex):
            raise ValueError("the result is no real number")
        return Fraction(found)
    # Looked at before: the result itself could take minutes.
    if _bits(base) * abs(exponent.numerator) > 2 * MAX_BITS and abs(base) != 1:
        raise ValueError("the result is too large")
    return base**exponent.numerator


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _bounded(value: Fraction) -> Fraction:
    if _bits(value) > MAX_BITS:
        raise ValueError("the result is too large")
    return value


def _round(value: Fraction, digits: Fraction = Fraction(0)) -> Fraction:
    if abs(digits) > MAX_BITS // 4:
        raise ValueError("the result is too large")
    return round(value, int(digits))


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _round,
    **{
        name: getattr(math, name)
        for name in ("sqrt", "exp", "log", "log10", "log2", "sin", "cos", "tan")
    },
}
NODES: dict[type, Callable[[Any, int], Fraction]] = {
    ast.Constant: _read_number,
    ast.Name: _read_name,
    ast.UnaryOp: _sign,
    ast.BinOp: _combine,
    ast.Call: _apply,
}


def write(value: Fraction) -> str:
    """Return the number in digits: all of a whole number, otherwise 15."""
    if value.denominator == 1:
        return str(value.numerator)
    with localcontext(prec=DIGITS):
        found = (Decimal(value.numerator) / Decimal(value.denominator)).normalize()
    return f"{found:f}" if -10 <= found.adjusted() <= DIGITS else f"{found:e}"
