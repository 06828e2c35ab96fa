// The TypeScript library of the handshake era. Argument: a file that says how each server is reached.

import { readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { questionToVerdict } from "./steps.mjs";

const { servers } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const clients = {};
let version;
for (const [name, { url, token, ...started }] of Object.entries(servers)) {
  const headers = { Authorization: `Bearer ${token}` };
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport(started);
  const agree = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreed) => {
    version = agreed;
    agree?.(agreed);
  };
  clients[name] = new Client({ name: "path_ts1", version: "1" });
  await clients[name].connect(transport);
  await clients[name].listTools(); // from here on the library holds answers against the tools' schemas
}
const told = await questionToVerdict((server, name, args) =>
  (clients[server] ?? clients.all).callTool({ name, arguments: args }));
console.log(JSON.stringify({ version, ...told }));
await Promise.all(Object.values(clients).map((client) => client.close()));
