"""What every log line of one exchange says about it.

Plain values, put together when a line is written: most exchanges write none, and context variables would cost each of
them a tenth of its time.
"""

import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class About:
    """One exchange. `key_id` and `server_id` are None until they are known.

    `began` is when its body was there, in seconds of `time.perf_counter`.
    """

    server: str
    began: float = 0.0
    key_id: str | None = None
    server_id: str | None = None
    _request_id: str = field(default="", init=False)

    def fields(self) -> dict[str, str | None]:
        """For a log line; the request's id is the same in all of them."""
        self._request_id = self._request_id or uuid.uuid4().hex
        return {
            "request_id": self._request_id,
            "server": self.server,
            "key_id": self.key_id,
            "server_id": self.server_id,
        }
