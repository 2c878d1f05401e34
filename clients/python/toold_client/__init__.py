"""Runs tool calls through a toold daemon. A call keeps its id while it is repeated after a
lost connection, so it runs once and has one return."""

import asyncio
import base64
import json
import os
import sys
import time
import uuid

import websockets

_HEADERS = "additional_headers" if int(websockets.__version__.split(".")[0]) >= 14 else "extra_headers"


class NoReturn(Exception):
    """The call has no return: whether it ran is not known. Repeat it under its id."""

    def __init__(self, call_id, why):
        super().__init__(f"no return came for {call_id}: {why}")
        self.call_id = call_id


class Refused(Exception):
    """The daemon answered a call by an error_message."""

    def __init__(self, frame):
        super().__init__(f"{frame['error_type']}: {frame['message']}")
        self.frame = frame


class Client:
    def __init__(self, url=None, token=None, token_file=None, patience=None, workspace=None, agent_id=None):
        self.url = url or os.environ.get("TOOLD_URL", "ws://127.0.0.1:7717/v1/ws")
        self.token = token
        self.token_file = token_file or os.environ.get("TOOLD_TOKEN_FILE") or os.path.expanduser("~/.local/state/toold/tokens/agent")
        self.patience = float(os.environ.get("TOOLD_PATIENCE", 60)) if patience is None else patience  # seconds without a connection
        self.workspace = workspace
        self.agent_id = agent_id

    def bash(self, command, **options):
        return self.call("bash", {"command": command}, **options)

    def call(self, tool, arguments, **options):
        return asyncio.run(self.acall(tool, arguments, **options))

    async def acall(self, tool, arguments, id=None, on_output=None):
        id = id or f"call-{uuid.uuid4()}"
        request = {"message_type": "approval_request_message", "tool_call": {"tool_call_id": id, "tool_name": tool, "arguments": arguments}}
        if self.agent_id:
            request["agent_id"] = self.agent_id
        seen = {"stdout": 0, "stderr": 0}
        since, pause = time.monotonic(), 0.05
        while True:
            opened, final, why = False, False, "the connection ended"
            try:
                token = self.token or open(self.token_file).read().strip()
                async with websockets.connect(self.url, max_size=None, **{_HEADERS: {"Authorization": "Bearer " + token}}) as ws:
                    opened = True
                    if self.workspace:
                        await ws.send(json.dumps({"message_type": "hello", "protocol": 1, "workspace": self.workspace}))
                    await ws.send(json.dumps(request))
                    async for text in ws:
                        if isinstance(text, str):
                            answer = _take(json.loads(text), id, seen, on_output)
                            if answer is not None:
                                return answer
            except FileNotFoundError as e:
                final, why = True, str(e)
            except (OSError, asyncio.TimeoutError, websockets.WebSocketException) as e:
                status = getattr(e, "status_code", None) or getattr(getattr(e, "response", None), "status_code", None)
                final = status is not None and status != 503
                why = f"the connection failed: {e}"
            if opened:
                since, pause = time.monotonic(), 0.05
            if final or time.monotonic() - since >= self.patience:
                raise NoReturn(id, why)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 2.0)


def _take(frame, id, seen, on_output):
    """Takes a frame: the return, or None when it is another one."""
    kind, ours = frame.get("message_type"), frame.get("tool_call_id") == id
    if kind == "tool_output_delta" and ours:
        data = frame["data"].encode() if "data" in frame else base64.b64decode(frame.get("data_b64", ""))
        # Output comes from the beginning again after a lost connection.
        fresh = data[max(0, seen[frame["stream"]] - frame["offset"]):]
        if fresh:
            seen[frame["stream"]] = frame["offset"] + len(data)
            if on_output:
                on_output(frame["stream"], fresh)
    if kind == "tool_return_message" and ours:
        return frame
    if kind == "error_message" and (ours or not frame.get("tool_call_id")):
        raise Refused(frame)
    return None


def _print(stream, data):
    out = getattr(sys, stream).buffer
    out.write(data)
    out.flush()


def main(command, **options):
    """Runs a command, prints what it prints, and returns its exit code."""
    try:
        ret = Client(**options).bash(command, on_output=_print)
    except (NoReturn, Refused) as e:
        print("toold: " + str(e).replace("\n", " "), file=sys.stderr)
        return 1
    code = ret["exit_code"]
    print(ret["result"].rstrip("\n") if code is None else f"[{ret['status']}, exit code {code}]", file=sys.stderr)
    return 1 if code is None else code
