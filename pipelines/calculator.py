"""Arithmetic from text, without `eval`."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CHARS: Final = 200
MAX_BITS: Final = 4096  # of any result on the way: 9**9**9 must not fill the memory

Number = int | float

_BINARY: Final[dict[type[ast.operator], Callable[[Number, Number], Number]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Final[dict[type[ast.unaryop], Callable[[Number], Number]]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def calculate(expression: str) -> Number:
    """Return the value of an arithmetic expression: numbers, `+ - * / // % **` and parentheses.

    Raises:
        ValueError: It is anything else, divides by zero, or has a result that is too large or not real.
    """
    if len(expression) > MAX_CHARS:
        msg = f"the expression has {len(expression)} characters; at most {MAX_CHARS} are calculated"
        raise ValueError(msg)
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except SyntaxError:
        msg = f"{expression!r} is not arithmetic"
        raise ValueError(msg) from None
    except ZeroDivisionError:
        msg = f"{expression!r} has no value: division by zero"  # the interpreter has several words for it
        raise ValueError(msg) from None
    except (ArithmeticError, MemoryError, RecursionError) as exc:
        msg = f"{expression!r} has no value: {exc}"
        raise ValueError(msg) from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _apply(op, _value(left), _value(right))
    msg = f"{ast.unparse(node)!r} is not arithmetic"
    raise ValueError(msg)


def _apply(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow) and _bits(left) * abs(right) > MAX_BITS:
        msg = "the result is too large"
        raise OverflowError(msg)
    result = _BINARY[type(op)](left, right)
    if isinstance(result, complex):
        msg = "the result is not a real number"
        raise ArithmeticError(msg)  # noqa: TRY004 - a value's fault, not a caller's type
    if _bits(result) > MAX_BITS:
        msg = "the result is too large"
        raise OverflowError(msg)
    return result


def _bits(number: Number) -> int:
    return number.bit_length() if isinstance(number, int) else 1
