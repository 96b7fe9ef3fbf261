"""What can go wrong with one exchange.

ProxyError                        status  code
    ClientFault                           the client sent something that cannot be read without doubt
        ParseError                   400  -32700   not JSON
        InvalidRequest               400  -32600   not one unambiguous message or batch
        HeaderMismatch               400  -32020   a mirrored header disagrees with the body
        BadFields                    400  -32600   header lines that contradict each other
        UnsupportedMedia             415  -32600   a charset or coding we do not read
        NotAcceptable                406  -32600   an answer that the client can read cannot be made
        UnsupportedVersion           400  -32022   a protocol version that is not spoken; tells those that are
        MethodNotFound               404  -32601
        InvalidParams                400  -32602
        BodyTooLarge                 413  -32600
        BodyTimeout                  408  -32600   the body did not arrive in time
    OwnFailure                            never 400, 404 or 405: dual-era clients read those as signs of a version
        LoopDetected                 508  -32603   the request has been here before
        PolicyUnknown                503  -32603   the authority did not answer: not knowing means refusing
        DownstreamUnreachable        502  -32603
        DownstreamUnusable           502  -32603   an answer that we cannot pass on
        DownstreamTimeout            504  -32603

Source: JSON-RPC 2.0 section 5.1; MCP 2026-07-28 for -32020; DESIGN 3 (Own failures); RFC 5842 section 7.2 (508).
Each instance may carry `id`: the JSON text of the caller's id, None while it is not known; `data`, decoded JSON; and
`cause`, what the log says instead of the message.
"""

from typing import Any


class ProxyError(Exception):
    """Base of the tree. `status` is for HTTP, `code` for JSON-RPC; the message is safe to send to the client.

    `cause` is for the log alone; the message where nothing more is known.
    """

    status = 500
    code = -32603

    def __init__(self, message: str, *, id: str | None = None, data: Any = None, cause: str | None = None) -> None:
        super().__init__(message)
        self.id = id
        self.data = data
        self.cause = message if cause is None else cause


class ClientFault(ProxyError):
    """The client sent something that cannot be read without doubt."""

    status = 400
    code = -32600


class ParseError(ClientFault):
    """The body is not JSON."""

    code = -32700


class InvalidRequest(ClientFault):
    """The body is JSON, but not one unambiguous message or a non-empty batch."""


class HeaderMismatch(ClientFault):
    """A mirrored `Mcp-*` header disagrees with the body."""

    code = -32020


class BadFields(ClientFault):
    """Header lines that contradict each other, or that try to have others stripped."""


class UnsupportedMedia(ClientFault):
    """A charset other than UTF-8, or a content coding."""

    status = 415


class NotAcceptable(ClientFault):
    """The client reads no form of answer that can be made."""

    status = 406


class UnsupportedVersion(ClientFault):
    """A protocol version that is not spoken here."""

    code = -32022


class MethodNotFound(ClientFault):
    """No such method."""

    status = 404
    code = -32601


class InvalidParams(ClientFault):
    """The parameters of a method that make no sense."""

    code = -32602


class BodyTooLarge(ClientFault):
    """The body is over the limit."""

    status = 413


class BodyTimeout(ClientFault):
    """The body did not arrive in time."""

    status = 408


class OwnFailure(ProxyError):
    """We, or what is behind us, could not do it."""

    status = 502


class LoopDetected(OwnFailure):
    """The request has been through this deployment before, so what is behind us leads back to us."""

    status = 508


class PolicyUnknown(OwnFailure):
    """The authority did not answer in time."""

    status = 503


class DownstreamUnreachable(OwnFailure):
    """No connection to the downstream."""


class DownstreamUnusable(OwnFailure):
    """The downstream's answer cannot be passed on: a redirect, a coding, a list that cannot be read."""


class DownstreamTimeout(OwnFailure):
    """The downstream gave no answer in time."""

    status = 504
