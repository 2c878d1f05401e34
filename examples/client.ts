// npx tsx client.ts 'make test'      runs one command through a toold daemon (npm install ws tsx)
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import WebSocket from "ws";

type Delta = { message_type: "tool_output_delta"; stream: "stdout" | "stderr"; data?: string; data_b64?: string };
type Return = { message_type: "tool_return_message"; status: string; result: string; exit_code: number | null };
type Failure = { message_type: "error_message"; error_type: string; message: string };
type Frame = Delta | Return | Failure | { message_type: "policy_decision" | "tool_started" };

const url = process.env.TOOLD_URL ?? "ws://127.0.0.1:7717/v1/ws";
const tokenFile = process.env.TOOLD_TOKEN_FILE ?? `${homedir()}/.local/state/toold/tokens/agent`;
const headers = { Authorization: `Bearer ${readFileSync(tokenFile, "utf8").trim()}` };
const call = { tool_call_id: `call-${randomUUID()}`, tool_name: "bash", arguments: { command: process.argv[2] ?? "echo hello from toold" } };
const ws = new WebSocket(url, { headers });
const end = (text: string, code: number) => { console.error(text); process.exitCode = code; ws.close(); };
ws.on("open", () => ws.send(JSON.stringify({ message_type: "approval_request_message", tool_call: call })));
let lost = "the connection ended before the return";
ws.on("error", (e: Error) => { lost = `the connection failed: ${e.message}`; });
ws.on("close", () => { process.exitCode ??= (console.error(lost), 1); });
ws.on("message", (frame) => {
  const m = JSON.parse(frame.toString()) as Frame;
  if (m.message_type === "tool_output_delta") process[m.stream].write(m.data ?? Buffer.from(m.data_b64 ?? "", "base64"));
  if (m.message_type === "tool_return_message") end(m.exit_code === null ? m.result : `[${m.status}, exit code ${m.exit_code}]`, m.exit_code ?? 1);
  if (m.message_type === "error_message") end(m.message, 1);
});
