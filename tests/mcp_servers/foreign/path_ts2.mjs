// The TypeScript library of both eras. Argument: a file that says how each server is reached, and the mode of negotiation.

import { readFileSync } from "node:fs";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { questionToVerdict } from "./steps.mjs";

const { servers, mode } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const clients = {};
for (const [name, { url, token, ...started }] of Object.entries(servers)) {
  const headers = { Authorization: `Bearer ${token}` };
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })
    : new StdioClientTransport(started);
  clients[name] = new Client({ name: "path_ts2", version: "1" }, { versionNegotiation: { mode } });
  await clients[name].connect(transport);
  await clients[name].listTools();
}
const told = await questionToVerdict((server, name, args) =>
  (clients[server] ?? clients.all).callTool({ name, arguments: args }));
console.log(JSON.stringify({ version: Object.values(clients)[0].getNegotiatedProtocolVersion(), ...told }));
await Promise.all(Object.values(clients).map((client) => client.close()));
