"""Capability tokens: `rdb_`, 256 random bits and a checksum in base 62; only the SHA-256 of a token is ever kept.

The fixed prefix and the checksum let scanners find a leaked token and let the server refuse a mistyped one without
looking it up. Nothing here reads or writes a store.
"""

import secrets
from hashlib import sha256
from zlib import crc32

PREFIX = "rdb_"
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SECRET_DIGITS = 43
_CHECKSUM_DIGITS = 6


def new_token() -> str:
    """A fresh token."""
    secret = _base62(secrets.randbits(256), _SECRET_DIGITS)
    return PREFIX + secret + _checksum(secret)


def token_hash(token: str) -> bytes | None:
    """The hash under which the token is known, 32 bytes; None if it is not formed like a token."""
    body = token.removeprefix(PREFIX)
    secret, checksum = body[:_SECRET_DIGITS], body[_SECRET_DIGITS:]
    well_formed = token.startswith(PREFIX) and token.isascii() and len(secret) == _SECRET_DIGITS
    if not well_formed or not secrets.compare_digest(checksum, _checksum(secret)):
        return None
    return sha256(token.encode()).digest()


def _checksum(secret: str) -> str:
    return _base62(crc32(secret.encode()), _CHECKSUM_DIGITS)


def _base62(number: int, digits: int) -> str:
    text = ""
    for _ in range(digits):
        number, digit = divmod(number, 62)
        text = _DIGITS[digit] + text
    return text
