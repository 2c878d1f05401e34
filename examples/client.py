# python3 client.py 'make test'      runs one command through a toold daemon (pip install websockets)
import asyncio, base64, json, os, sys, uuid
import websockets

url = os.environ.get("TOOLD_URL", "ws://127.0.0.1:7717/v1/ws")
token = open(os.environ.get("TOOLD_TOKEN_FILE", os.path.expanduser("~/.local/state/toold/tokens/agent"))).read().strip()
option = "additional_headers" if int(websockets.__version__.split(".")[0]) >= 14 else "extra_headers"

async def bash(command):
    async with websockets.connect(url, max_size=None, **{option: {"Authorization": "Bearer " + token}}) as ws:
        # A repeated id never runs twice: it gets the same return again.
        call = {"tool_call_id": f"call-{uuid.uuid4()}", "tool_name": "bash", "arguments": {"command": command}}
        await ws.send(json.dumps({"message_type": "approval_request_message", "tool_call": call}))
        async for frame in ws:
            m = json.loads(frame)
            if m["message_type"] == "tool_output_delta":
                stream = getattr(sys, m["stream"]).buffer
                stream.write(m["data"].encode() if "data" in m else base64.b64decode(m.get("data_b64", "")))
                stream.flush()
            if m["message_type"] in ("tool_return_message", "error_message"):
                code = m.get("exit_code")
                print(m.get("result", m.get("message")) if code is None else f"[{m['status']}, exit code {code}]", file=sys.stderr)
                return 1 if code is None else code
    return "the connection ended before the return"

try:
    sys.exit(asyncio.run(bash(sys.argv[1] if len(sys.argv) > 1 else "echo hello from toold")))
except (OSError, websockets.WebSocketException) as e:
    sys.exit(f"the connection failed: {e}")
