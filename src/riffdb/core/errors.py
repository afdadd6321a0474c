"""`RiffError`: a request that could not be done. Not a diagnostic (the contract is wrong), not an outcome (the business
said no), not an assertion (we are wrong).

Every error carries a code of `codes.py`, a plain message that says what was wrong and what to do, and where it applies
the path of the offending value and the key to ask again with. Values of users never stand in a message.
"""

from collections.abc import Mapping

from riffdb.core.codes import CODES, Code


class RiffError(Exception):
    """An error with a stable code; `status`, `exit` and `retryable` follow from the code."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        path: str | None = None,
        key: str | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path
        self.key = key
        self.detail = dict(detail or {})

    @property
    def facts(self) -> Code:
        """Status, exit code and retryability of the error's code."""
        return CODES[self.code]

    def to_json(self) -> dict[str, object]:
        """The error as an RFC 9457 problem object."""
        facts = self.facts
        problem: dict[str, object] = {
            "type": f"urn:riffdb:error:{self.code}",
            "title": facts.title,
            "status": facts.status,
            "code": self.code,
            "detail": self.message,
            "retryable": facts.retryable,
        }
        if self.path is not None:
            problem["path"] = self.path
        if self.key is not None:
            problem["key"] = self.key
        return problem | self.detail

    @classmethod
    def from_json(cls, problem: Mapping[str, object]) -> "RiffError":
        """The error that a problem object tells of; a code unknown here counts as unavailable."""
        code = str(problem.get("code", ""))
        known = {"type", "title", "status", "code", "detail", "retryable", "path", "key"}
        path, key = problem.get("path"), problem.get("key")
        return cls(
            code if code in CODES else "RDB-E-UNAVAILABLE",
            str(problem.get("detail", problem.get("title", "the server gave no reason"))),
            path=None if path is None else str(path),
            key=None if key is None else str(key),
            detail={name: value for name, value in problem.items() if name not in known},
        )


def input_error(path: str, reason: str) -> RiffError:
    """The refusal of one input value: where it stands and what it must be."""
    return RiffError("RDB-E-INPUT", f"{path or 'the input'}: {reason}", path=path)
