// node client.mjs 'make test'      runs one command through a toold daemon (npm install ws)
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import WebSocket from "ws";

const url = process.env.TOOLD_URL ?? "ws://127.0.0.1:7717/v1/ws";
const tokenFile = process.env.TOOLD_TOKEN_FILE ?? `${homedir()}/.local/state/toold/tokens/agent`;
const token = readFileSync(tokenFile, "utf8").trim();
const call = {
  tool_call_id: `call-${randomUUID()}`, // a repeated id never runs twice: it gets the same return again
  tool_name: "bash",
  arguments: { command: process.argv[2] ?? "echo hello from toold" },
};

const ws = new WebSocket(url, { headers: { Authorization: `Bearer ${token}` } });
ws.on("open", () => ws.send(JSON.stringify({ message_type: "approval_request_message", tool_call: call })));
let lost = "the connection ended before the return";
ws.on("error", (e) => { lost = `the connection failed: ${e.message}`; });
ws.on("close", () => { process.exitCode ??= (console.error(lost), 1); });
ws.on("message", (frame) => {
  const m = JSON.parse(frame);
  if (m.message_type === "tool_output_delta") process[m.stream].write(m.data ?? Buffer.from(m.data_b64 ?? "", "base64"));
  if (m.message_type !== "tool_return_message" && m.message_type !== "error_message") return;
  console.error(m.exit_code == null ? m.result ?? m.message : `[${m.status}, exit code ${m.exit_code}]`);
  process.exitCode = m.exit_code ?? 1;
  ws.close();
});
