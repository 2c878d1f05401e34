// Runs tool calls through a toold daemon. A call keeps its id while it is repeated after a
// lost connection, so it runs once and has one return.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws"; // Node's own, where there is one, sends no Authorization header

/** The call has no return: whether it ran is not known. Repeat it under its id. */
export class NoReturn extends Error {
  constructor(callID, why) {
    super(`no return came for ${callID}: ${why}`);
    this.name = "NoReturn";
    this.callID = callID;
  }
}

/** The daemon answered a call by an error_message. */
export class Refused extends Error {
  constructor(frame) {
    super(`${frame.error_type}: ${frame.message}`);
    this.name = "Refused";
    this.frame = frame;
  }
}

export class Client {
  constructor(options = {}) {
    this.url = options.url ?? process.env.TOOLD_URL ?? "ws://127.0.0.1:7717/v1/ws";
    this.token = options.token;
    this.tokenFile = options.tokenFile ?? process.env.TOOLD_TOKEN_FILE ?? `${homedir()}/.local/state/toold/tokens/agent`;
    this.patience = options.patience ?? 1000 * (process.env.TOOLD_PATIENCE ?? 60); // milliseconds without a connection
    this.workspace = options.workspace;
    this.agentID = options.agentID;
  }

  bash(command, options) {
    return this.call("bash", { command }, options);
  }

  async call(tool, args, { id = `call-${randomUUID()}`, onOutput = () => {} } = {}) {
    const request = { message_type: "approval_request_message", tool_call: { tool_call_id: id, tool_name: tool, arguments: args } };
    if (this.agentID) request.agent_id = this.agentID;
    const state = { id, onOutput, seen: { stdout: 0, stderr: 0 } };
    let since = Date.now();
    for (let pause = 50; ; pause = Math.min(pause * 2, 2000)) {
      const end = await this.#once(request, state);
      if (end.answer?.message_type === "tool_return_message") return end.answer;
      if (end.answer) throw new Refused(end.answer);
      if (end.opened) [since, pause] = [Date.now(), 50];
      if (end.final || Date.now() - since >= this.patience) throw new NoReturn(id, end.why);
      await sleep(pause);
    }
  }

  // One connection: the answer to the call, or why it ended without one.
  #once(request, state) {
    return new Promise((resolve) => {
      const end = { why: "the connection ended", opened: false, final: false };
      let ws;
      try {
        const token = this.token ?? readFileSync(this.tokenFile, "utf8").trim();
        ws = new WebSocket(this.url, { headers: { Authorization: `Bearer ${token}` } });
      } catch (e) {
        return resolve({ ...end, why: e.message, final: true });
      }
      ws.on("unexpected-response", (_, response) => {
        end.why = `the daemon answered ${response.statusCode}`;
        end.final = response.statusCode !== 503;
        ws.terminate();
      });
      ws.on("error", (e) => { if (!end.final) end.why = `the connection failed: ${e.message || e.code}`; });
      ws.on("close", () => resolve(end));
      ws.on("open", () => {
        end.opened = true;
        if (this.workspace) ws.send(JSON.stringify({ message_type: "hello", protocol: 1, workspace: this.workspace }));
        ws.send(JSON.stringify(request));
      });
      ws.on("message", (data) => {
        const frame = JSON.parse(data);
        if (frame.message_type === "tool_output_delta" && frame.tool_call_id === state.id) return output(frame, state);
        const ours = frame.tool_call_id === state.id || (frame.message_type === "error_message" && !frame.tool_call_id);
        if (!ours || !["tool_return_message", "error_message"].includes(frame.message_type)) return;
        end.answer = frame;
        ws.close();
      });
    });
  }
}

// Output comes from the beginning again after a lost connection: what was seen is left out.
function output(frame, state) {
  const bytes = Buffer.from(frame.data ?? frame.data_b64 ?? "", frame.data === undefined ? "base64" : "utf8");
  const fresh = bytes.subarray(Math.max(0, state.seen[frame.stream] - frame.offset));
  if (fresh.length === 0) return;
  state.seen[frame.stream] = frame.offset + bytes.length;
  state.onOutput(frame.stream, fresh);
}

/** Runs a command, prints what it prints, and ends the program as it ended. */
export async function main(command, options) {
  try {
    const ret = await new Client(options).bash(command, { onOutput: (stream, bytes) => process[stream].write(bytes) });
    console.error(ret.exit_code === null ? ret.result.trimEnd() : `[${ret.status}, exit code ${ret.exit_code}]`);
    process.exitCode = ret.exit_code ?? 1;
  } catch (e) {
    console.error(`toold: ${e.message.replaceAll("\n", " ")}`);
    process.exitCode = 1;
  }
}
