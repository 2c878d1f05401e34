// toold answers these calls in the place of Claude Code. It is asked by a command that gets
// the call on its standard input and prints what to answer. Whatever goes wrong, the call is
// denied: only an answer of toold lets anything run.
const toold = ["toold"];

const tools = ["Bash", "Read", "Edit", "Write", "NotebookEdit", "TaskStop", /^mcp__toold__/];

const run = ($, flags, input) =>
  $.process.run([...toold, "hook", "claude", ...flags], { stdin: input, timeoutMs: 120000 });

// ask returns toold's answer. A call that takes longer than one command may run, or that waits
// for a person, is asked for again: toold runs it once.
const ask = async ($, e) => {
  for (let flags = ["--answer"]; ; flags = ["--answer", "--again"]) {
    const r = await run($, flags, JSON.stringify(e));
    if (r.exitCode !== 0) return { deny: `toold did not answer, so nothing was done: ${r.stderr}` };
    const answer = JSON.parse(r.stdout);
    if (answer.wait !== true) return answer;
  }
};

export const register = (on) => {
  // What a model does with its background commands are tools of their own.
  on("session.start", async ($, e, next) => {
    try {
      const r = await run($, ["--tools"], "");
      for (const tool of JSON.parse(r.stdout)) await $.tool.register(tool);
    } catch {
      // Without them background commands cannot be followed; nothing runs that should not.
    }
    return next(e);
  });
  on("tool.call", { tool: tools }, async ($, e, next) => {
    const answer = await ask($, e);
    if (typeof answer.deny === "string") return { deny: answer.deny };
    if (answer.result !== undefined) return { result: answer.result };
    if (answer.allow === true) return next(e);
    return { deny: "toold gave no answer that is understood, so nothing was done" };
  }).catch(() => ({ deny: "toold cannot be reached, so nothing was done. Ask the user to start it in this project: toold serve" }));
};
