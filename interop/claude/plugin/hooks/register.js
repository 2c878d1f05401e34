// toold answers these calls in the place of Claude Code. It is asked by a command that gets
// the call on its standard input and prints what to answer. Whatever goes wrong, the call is
// denied: only an answer of toold lets anything run.
const toold = ["toold"];

const tools = ["Bash", "Read", "Edit", "Write", "NotebookEdit", "TaskStop", /^mcp__toold__(?!wait$)/];

const run = ($, flags, input) =>
  $.process.run([...toold, "hook", "claude", ...flags], { stdin: input, timeoutMs: 120000 });

// ask returns toold's answer. A call that takes longer than one command may run, or that waits
// for a person, is asked for again: toold runs it once. After a while ask gives up with
// { wait: true }.
const ask = async ($, e, flags) => {
  for (let n = 0; n < 25; n++) {
    const r = await run($, flags, JSON.stringify(e));
    if (r.exitCode !== 0) return { deny: `toold did not answer, so nothing was done: ${r.stderr}` };
    const answer = JSON.parse(r.stdout);
    if (answer.wait !== true) return answer;
    flags = ["--answer", "--again"];
  }
  return { wait: true };
};

// Claude Code ends a handler whose commands take more than 20 minutes together, those of calls
// that it makes itself left out. So a long wait is a chain of calls of a tool of its own.
const waiting = "mcp__toold__wait";

export const register = (on) => {
  // What a model does with its background commands are tools of their own.
  on("session.start", async ($, e, next) => {
    try {
      await $.tool.register({ name: "wait", description: "Waits for a call of toold. Only for its plugin.", inputSchema: { type: "object" }, isDeferred: true });
      const r = await run($, ["--tools"], "");
      for (const tool of JSON.parse(r.stdout)) await $.tool.register(tool);
    } catch {
      // Without them background commands cannot be followed; nothing runs that should not.
    }
    return next(e);
  });
  on("tool.call", { tool: waiting }, async ($, e) => ({
    result: JSON.stringify(await ask($, JSON.parse(e.call), ["--answer", "--again"])),
  })).catch(() => ({ deny: "toold cannot be asked" }));
  on("tool.call", { tool: tools }, async ($, e, next) => {
    let answer = await ask($, e, ["--answer"]);
    while (answer.wait === true) answer = JSON.parse((await $.tool.call({ tool: waiting, call: JSON.stringify(e) })).result);
    if (typeof answer.deny === "string") return { deny: answer.deny };
    if (answer.result !== undefined) return { result: answer.result };
    if (answer.allow === true) return next(e);
    return { deny: "toold gave no answer that is understood, so nothing was done" };
  }).catch(() => ({ deny: "toold cannot be asked any more; if it had the call already, toold log says what became of it" }));
};
