// What `toold schema` says of the frames, for TypeScript. A test compares the two.

export interface Options {
  url?: string;
  token?: string;
  tokenFile?: string;
  /** Milliseconds without a connection after which a call fails with NoReturn. */
  patience?: number;
  workspace?: string;
  agentID?: string;
}

export interface CallOptions {
  /** A repeated id never runs twice: it gets the same return again. */
  id?: string;
  onOutput?(stream: "stdout" | "stderr", bytes: Uint8Array): void;
}

export interface ToolReturn {
  message_type: "tool_return_message";
  id: string;
  date: string;
  tool_call_id: string;
  agent_id?: string;
  tool_name: string;
  name: string;
  status: "success" | "error";
  result: string;
  tool_return: string;
  stdout: string[];
  stderr: string[];
  tool_returns: { type: "tool"; tool_call_id: string; status: string; tool_return: string; stdout: string[]; stderr: string[] }[];
  otid: string;
  run_id: string | null;
  step_id: string | null;
  seq_id: number;
  exit_code: number | null;
  signal: string | null;
  timed_out: boolean;
  cancelled: boolean;
  duration_ms: number;
  truncated: boolean;
  stdout_bytes: number;
  stderr_bytes: number;
  terminal: string | null;
  order?: "exact" | "arrival";
  sandbox: { profile: string; tier?: string; enforced: string[]; network: boolean; [key: string]: unknown } | null;
  decision: { action: string; by: string; rule?: string; reason?: string; [key: string]: unknown } | null;
  error_type: string | null;
  diff: string | null;
  note?: string;
  cause?: string | null;
  denials?: { kind: string; op: string; target: string; exact: boolean; setting: string; hint: string }[];
  leftovers?: { pid: number; command: string }[];
  background?: { tool_call_id: string; pid: number; started_at: string } | null;
  replayed?: boolean;
  file?: ChangedFile | null;
  files?: ChangedFile[];
}

export interface ChangedFile {
  path: string;
  operation: "read" | "create" | "write" | "edit" | "remove" | "move";
  from?: string;
  bytes: number;
  lines: number;
  replacements?: number;
  total_lines?: number | null;
  next_offset?: number;
}

export interface ErrorMessage {
  message_type: "error_message";
  error_type: string;
  message: string;
  request_id?: string;
  tool_call_id?: string;
  agent_id?: string;
}

export declare class NoReturn extends Error {
  readonly callID: string;
}

export declare class Refused extends Error {
  readonly frame: ErrorMessage;
}

export declare class Client {
  constructor(options?: Options);
  call(tool: string, args: Record<string, unknown>, options?: CallOptions): Promise<ToolReturn>;
  bash(command: string, options?: CallOptions): Promise<ToolReturn>;
}

export declare function main(command: string, options?: Options): Promise<void>;
