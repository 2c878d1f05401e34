// npx tsx client.ts 'make test'      runs one command through a toold daemon (npm install toold-client tsx)
import { main, type Options } from "toold-client";

const options: Options = { agentID: "example" };
await main(process.argv[2] ?? "echo hello from toold", options);
