"""One HTTP request and its response as a state machine, without a socket.

    REQUEST --receive_request--> ANSWERED                                      a Reply: nothing went downstream
       \\------receive_request--> FORWARDED --receive_response_head--> BODY     a Forward: it may go downstream
                                                                      |
                                 DONE <------receive_response_eof-----'

Source: DESIGN 1 (order of the checks), 3 (inspect, block, filter); LAYOUT (walk-throughs 1 and 2).

Invariant: a `Forward` is made here alone, of one permit for each message, and carries the bytes that came in. A tool
list leaves only through `Held.release`, with facts that the driver reads after the list has arrived.
"""

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from proxy import headers, identity, jsonrpc, policy, replies, returned, sse, tools
from proxy.edits import Edit, apply
from proxy.errors import BadFields, ClientFault, DownstreamUnusable, InvalidRequest, ProxyError
from proxy.held import Held
from proxy.jsonrpc import Body, Message, Notification, Request
from proxy.locations import Place
from proxy.paths import PREFIX
from proxy.ports import DataPlaneSettings, Fields, Forward, Reply
from proxy.sse import Event
from registry import access
from registry.access import Permit, Refusal
from registry.credentials import holds_key
from registry.model import Facts, Passing

TOOLS_LIST = "tools/list"
LISTEN = "subscriptions/listen"


class Mode(enum.Enum):
    """How the body of a response is treated."""

    STREAM = enum.auto()
    """No list can be in it: it passes undecoded."""
    EVENTS = enum.auto()
    """An event stream: event by event, lists held."""
    WHOLE = enum.auto()
    """A list may be in it: it is collected, and its head waits for it."""


class _State(enum.Enum):
    REQUEST = enum.auto()
    ANSWERED = enum.auto()
    FORWARDED = enum.auto()
    BODY = enum.auto()
    DONE = enum.auto()


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What came before the body.

    `key` is the text of the key that was presented, None without one; `version` is that of HTTP, `1.1` or `1.0`.
    """

    method: str
    query: str
    fields: Fields
    key: str | None
    version: str = "1.1"


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What goes out before the body; in mode WHOLE, once the body is known."""

    status: int
    fields: Fields
    mode: Mode


class Exchange:
    """One request and its response; see the module for its states."""

    def __init__(self, facts: Facts, head: RequestHead, settings: DataPlaneSettings) -> None:
        self._facts = facts
        self._head = head
        self._settings = settings
        self._passing = facts.server.passing if facts.server else Passing()
        self._state = _State.REQUEST
        self._id: str | None = None
        self._forwarded: Fields = ()
        self._may_bring_list = head.method == "GET"  # a resumed stream may replay a list that another process asked for
        self._is_subscription = head.method == "GET"
        self._mode = Mode.STREAM
        self._decoder = sse.Decoder(settings.max_event_bytes)
        self._collected = bytearray()

    def receive_request(self, body: bytes) -> Forward | Reply:
        """Judge the whole request.

        Args:
            body: all of it, as it came; at most `max_body_bytes`.
        """
        self._advance(_State.REQUEST, _State.ANSWERED)
        entered = access.use_server(self._facts)
        if isinstance(entered, Refusal):
            is_told_by_id = entered.reason is access.Reason.POLICY_UNREADABLE
            return replies.turned_away(entered, known_id(body) if is_told_by_id else None)
        try:
            outcome = self._inspect(entered, body)
        except ClientFault as fault:
            return replies.for_error(fault)
        if isinstance(outcome, Forward):
            self._state = _State.FORWARDED
            prefix = f"{self._settings.public_path}{PREFIX}{entered.server.path}"
            self._place = Place(entered.server.url, self._head.query, prefix)
        return outcome

    def _inspect(self, entered: Permit, body: bytes) -> Forward | Reply:
        headers.check_request_fields(self._head.fields)
        if holds_key(self._head.query):
            raise BadFields("a key belongs in a header field, not in the address")
        if self._head.method != "POST":
            if body:
                raise InvalidRequest(f"a {self._head.method} request has no body")
            return self._forward((entered,), None)
        messages = jsonrpc.parse(body)
        headers.check_mcp_fields(self._head.fields, messages)
        return self._judge(messages, body)

    def _judge(self, messages: Body, body: bytes) -> Forward | Reply:
        self._id = messages.only_id
        self._is_subscription = self._id is not None and _method(messages.messages[0]) == LISTEN
        self._may_bring_list = TOOLS_LIST in map(_method, messages.messages)
        verdicts = tuple(policy.decide(self._facts, message) for message in messages.messages)
        permits = tuple(verdict for verdict in verdicts if isinstance(verdict, Permit))
        if len(permits) < len(verdicts):
            return replies.refused(messages, verdicts, self._settings.refusal_style)
        return self._forward(permits, body)

    def _forward(self, permits: tuple[Permit, ...], body: bytes | None) -> Forward:
        via = f"{self._head.version} {self._settings.pseudonym}"
        fields = headers.forwarded_fields(
            self._head.fields, self._head.key, via, passes_cookies=self._passing.passes_cookies
        )
        self._forwarded = fields
        return Forward(permits, self._head.method, self._head.query, fields, body)

    @property
    def is_subscription(self) -> bool:
        """True when nobody waits for the end of the answer: a GET, or `subscriptions/listen` of MCP 2026-07-28."""
        return self._is_subscription

    @property
    def answer_timeout_s(self) -> float:
        """How long the downstream may take to the head, and then for a body that has to be whole before it leaves."""
        return self._passing.downstream_timeout_s or self._settings.downstream_timeout_s

    def failed(self, error: ProxyError) -> Reply:
        """The answer when something went wrong before the first byte of the response: with the caller's id."""
        error.id = error.id or self._id
        return replies.for_error(error)

    def turned_away(self, refusal: Refusal) -> Reply:
        """The answer when a held list may not leave at all and nothing was sent yet."""
        return replies.turned_away(refusal, self._id)

    def receive_response_head(self, status: int, fields: Fields) -> ResponseHead:
        """Judge the head of the downstream's answer.

        Raises:
            DownstreamUnusable: a redirect, an interim or coded answer, or a text that two readers would decode
                differently.
        """
        self._advance(_State.FORWARDED, _State.BODY)
        _check_status(status)
        returned.check_redirect(status, fields, self._place)
        if not headers.is_utf8(fields) or headers.holds_control(fields):
            raise DownstreamUnusable("a header field of the downstream's answer cannot be passed on")
        if coding := headers.content_coding(fields) or headers.transfer_coding(fields):
            raise DownstreamUnusable(f"the downstream's answer is coded ({coding}), which nobody asked for")
        self._mode = self._mode_for(fields)
        if self._mode is not Mode.STREAM and not headers.charset_is_utf8(fields):
            raise DownstreamUnusable("the downstream's answer is not in UTF-8")
        may_be_edited = self._mode is not Mode.STREAM
        passes_cookies = self._passing.passes_cookies
        kept = returned.returned_fields(fields, self._place, may_be_edited=may_be_edited, passes_cookies=passes_cookies)
        return ResponseHead(status, kept, self._mode)

    def _mode_for(self, fields: Fields) -> Mode:
        if headers.media_type(fields) == headers.EVENT_STREAM:
            return Mode.EVENTS
        return Mode.WHOLE if self._may_bring_list else Mode.STREAM

    def receive_response_data(self, chunk: bytes) -> Iterator[bytes | Held]:
        """Take the next bytes of the body; yields what may leave, in order. Take each before asking for the next.

        Raises:
            DownstreamUnusable: a list that cannot be read, or more than we are ready to hold.
        """
        self._expect(_State.BODY)
        if self._mode is Mode.STREAM:
            yield chunk
        elif self._mode is Mode.EVENTS:
            yield from map(self._judged, self._fed(chunk))
        else:
            self._collect(chunk)

    def receive_response_eof(self) -> Iterator[bytes | Held]:
        """The body has ended as its framing says; yields what was waiting for that."""
        self._advance(_State.BODY, _State.DONE)
        if self._mode is Mode.EVENTS:
            yield from map(self._judged, self._decoder.eof())
        elif self._mode is Mode.WHOLE:
            data = bytes(self._collected)
            yield self._held(data, lambda edits: apply(data, edits)) or data

    def _fed(self, chunk: bytes) -> Sequence[Event]:
        try:
            return self._decoder.feed(chunk)
        except sse.EventTooLarge as exc:
            raise DownstreamUnusable(str(exc)) from exc

    def _judged(self, event: Event) -> bytes | Held:
        return self._held(event.data, event.edited) or event.raw

    def _held(self, data: bytes, with_edits: Callable[[Sequence[Edit]], bytes]) -> Held | None:
        try:
            lists = tools.find_lists(data)
        except tools.UnreadableList as exc:
            raise DownstreamUnusable(f"a tool list of the downstream cannot be read: {exc}") from exc
        if lists is None:
            return None
        tells_who = identity.may_tell_who(self._head.query, self._forwarded)
        return Held(lists, with_edits, self._list_ttl_ms, tells_who)

    @property
    def _list_ttl_ms(self) -> int:
        own = self._passing.list_ttl_ms
        return self._settings.list_ttl_ms if own is None else own

    def _collect(self, chunk: bytes) -> None:
        self._collected += chunk
        if len(self._collected) > self._settings.max_event_bytes:
            raise DownstreamUnusable(f"an answer that may hold a list is over {self._settings.max_event_bytes} bytes")

    def _advance(self, before: _State, after: _State) -> None:
        self._expect(before)
        self._state = after

    def _expect(self, state: _State) -> None:
        if self._state is not state:
            raise RuntimeError(f"not now: the exchange is {self._state.name}, not {state.name}")


def _method(message: Message) -> str | None:
    """Also of a notification, which lenient servers answer too; None for a response."""
    return message.method if isinstance(message, Request | Notification) else None


def _check_status(status: int) -> None:
    if status < 200:
        raise DownstreamUnusable("the downstream answers with an interim response")
    if status == 206:
        raise DownstreamUnusable("the downstream answers with a part, which nobody asked for")


def known_id(body: bytes) -> str | None:
    """The id of the one request in a body that is not going to be judged; None when there is no saying."""
    try:
        return jsonrpc.parse(body).only_id
    except ProxyError as error:
        return error.id
