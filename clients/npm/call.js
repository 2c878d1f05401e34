#!/usr/bin/env node
import { main } from "./index.js";

await main(process.argv[2] ?? "echo hello from toold");
