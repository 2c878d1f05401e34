// node client.mjs 'make test'      runs one command through a toold daemon (npm install toold-client)
import { main } from "toold-client";

await main(process.argv[2] ?? "echo hello from toold");
