// Obsidian's main process, as far as its command line goes, over pages of a real Chromium. Driven by lines of JSON on standard input, which
// are answered in their order. How the command line talks was observed by others: one line of JSON in, raw text out, the connection closed.
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";

const plugin = path.resolve(import.meta.dirname, "../../../obsidian_agent/obsidian/companion");
const required = createRequire(path.join(plugin, "package.json"));
const { chromium } = required("playwright-core");
const ORIGIN = "http://localhost"; // secure enough for window.crypto.subtle; every request is answered here, none leaves
const MODULES = ["@codemirror/state", "@codemirror/view", "@codemirror/commands", "@codemirror/language", "@codemirror/streamparser", "@lezer/common", "@lezer/highlight",
  "@lezer/lr", "@marijn/find-cluster-break", "style-mod", "w3c-keyname", "crelt"];

/** Where the module of a package for browsers is. */
function moduleOf(name) {
  const folder = path.join(plugin, "node_modules", name);
  const { exports, module } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const found = module ?? exports?.import ?? exports?.["."]?.import;
  return path.join(folder, found);
}

const IMPORTS = Object.fromEntries(MODULES.map((name) => [name, `/module/${name}`]));
const PAGE = `<!doctype html><meta charset="utf-8"><script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script><body></body>`;

async function answered(route) {
  const { pathname } = new URL(route.request().url());
  if (pathname === "/") return route.fulfill({ contentType: "text/html", body: PAGE });
  if (pathname === "/app.mjs") return route.fulfill({ contentType: "text/javascript", path: path.join(import.meta.dirname, "app.mjs") });
  if (pathname.startsWith("/module/")) return route.fulfill({ contentType: "text/javascript", path: moduleOf(pathname.slice(8)) });
  return route.abort();
}

const browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox"] });
let vault = null;

/** Tell of files that come, change or go, in dot folders not. Node's own recursive watch loses files that another is renamed over. */
function watched(base, tell) {
  const watchers = new Map();
  const watch = (folder) => {
    const watcher = fs.watch(path.join(base, folder), (_event, name) => {
      if (!name || name.startsWith(".")) return;
      const found = path.join(folder, name);
      const isFolder = fs.statSync(path.join(base, found), { throwIfNoEntry: false })?.isDirectory();
      if (isFolder && !watchers.has(found)) look(found);
      else if (!isFolder) tell(found);
    });
    watchers.set(folder, watcher);
    watcher.on("error", () => {});
  };
  const look = (folder) => {
    watch(folder);
    for (const entry of fs.readdirSync(path.join(base, folder), { withFileTypes: true })) {
      if (entry.name.startsWith(".")) continue;
      if (entry.isDirectory()) look(path.join(folder, entry.name));
      else if (folder) tell(path.join(folder, entry.name));
    }
  };
  look("");
  return () => watchers.forEach((watcher) => watcher.close());
}

/** A vault's window: a page, the folder's watcher and a socket. */
async function opened({ base, id, socket }) {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.route("**/*", answered);
  const real = (name) => path.join(base, name);
  await page.exposeFunction("__read", (name) => fs.readFileSync(real(name), "utf8").replace(/^\ufeff/, ""));
  await page.exposeFunction("__write", (name, text) => fs.writeFileSync(real(name), text));
  await page.exposeFunction("__rename", (name, to) => fs.renameSync(real(name), real(to)));
  await page.goto(ORIGIN);
  const files = fs.readdirSync(base, { recursive: true }).filter((name) => !name.startsWith(".") && fs.statSync(real(name)).isFile());
  const source = fs.readFileSync(path.join(plugin, "main.js"), "utf8");
  const manifest = JSON.parse(fs.readFileSync(path.join(plugin, "manifest.json"), "utf8"));
  await page.evaluate(() => import("/app.mjs"));
  await page.evaluate((given) => window.start(...given), [base, files, source, manifest]);
  const close = watched(base, (name) => {
    let text = null;
    try {
      text = fs.readFileSync(real(name), "utf8").replace(/^\ufeff/, "");
    } catch (error) {
      if (error.code !== "ENOENT") return;
    }
    page.evaluate((given) => window.app.changed(...given), [name, text]).catch(() => {});
  });
  const here = { page, id, base, calls: [], errors, fault: null, busy: Promise.resolve() };
  const server = net.createServer({ allowHalfOpen: true }, (connection) => served(here, connection));
  await new Promise((resolve) => server.listen(socket, resolve));
  fs.chmodSync(socket, 0o600);
  here.close = async () => {
    close();
    server.close();
    await page.close();
  };
  return here;
}

function served(here, connection) {
  let got = Buffer.alloc(0);
  connection.on("error", () => {});
  connection.on("data", async (data) => {
    got = Buffer.concat([got, data]);
    const end = got.indexOf(10);
    if (end < 0) return;
    const { argv } = JSON.parse(got.subarray(0, end).toString("latin1"));
    here.calls.push(argv);
    if (here.fault === "hang" || (here.fault === "edit unheard" && actionOf(argv) === "edit")) return;
    // "serial": a call waits for the one before, which nobody has seen the app do or not do.
    const turn = here.fault === "serial" ? here.busy : Promise.resolve();
    const text = turn.then(() => command(here, argv)).catch((error) => `Error: ${error.message}`);
    here.busy = text.catch(() => {});
    const answer = await text;
    if (here.fault === "edit unanswered" && actionOf(argv) === "edit") return;
    if (here.fault === "half") connection.end(answer.slice(0, answer.length / 2));
    else if (here.fault === "old") connection.end(`${answer.replace('"protocol":1', '"protocol":0')}\n`);
    else if (here.fault === "flood") connection.end(`OA1 ${"x".repeat(60 << 20)}\n`);
    else connection.end(`${answer}\n`);
  });
}

/** The action that the plugin is asked for. */
function actionOf(argv) {
  const request = argv.find((word) => word.startsWith("req="));
  return request && JSON.parse(Buffer.from(request.slice(4), "base64url").toString()).action;
}

/** What Obsidian's command line prints. */
async function command(here, [first, ...rest]) {
  let [name, words] = [first, rest];
  if (name?.startsWith("vault=")) {
    if (name.slice(6) !== here.id) return "Vault not found.";
    [name, ...words] = words;
  }
  if (here.fault === "not open") return "Vault not found.";
  if (here.fault === "off") return "Command line interface is not enabled. Please turn it on in Settings > General > Advanced.";
  const unescaped = (value) => value.replace(/\\n/g, "\n").replace(/\\t/g, "\t");
  const parameters = Object.fromEntries(words.map((word) => {
    const at = word.indexOf("=");
    return at < 0 ? [word, "true"] : [word.slice(0, at), unescaped(word.slice(at + 1))];
  }));
  if (name === "version") return "1.13.7 (installer 1.12.7)";
  if (name === "vault") return here.base;
  if (name === "file") return here.page.evaluate(() => window.app.workspace.active.view.file?.path).then((found) => (found ? `path\t${found}` : "Error: No active file."));
  if (name === "open") return here.page.evaluate((given) => window.show(...given), [parameters.path, parameters.newtab === "true"]);
  if (name === "commands") return here.page.evaluate(() => window.app.commands.listCommands().map(({ id }) => id).join("\n"));
  if (name === "command") {
    const done = await here.page.evaluate((id) => window.app.commands.executeCommandById(id), parameters.id);
    return done ? `Executed: ${parameters.id}` : `Error: Command "${parameters.id}" not found.`;
  }
  const answer = await here.page.evaluate((given) => window.handle(...given), [name, parameters]);
  return answer ?? `Error: Command "${name}" not found. It may require a plugin to be enabled.`;
}

const hand = {
  open: async (asked) => {
    if (vault) await vault.close();
    vault = await opened(asked);
  },
  close: async () => {
    await vault?.close();
    vault = null;
  },
  type: ({ text, delay }) => vault.page.keyboard.type(text, { delay: delay ?? 0 }),
  press: ({ key }) => vault.page.keyboard.press(key),
  js: ({ code }) => vault.page.evaluate(code),
  fault: ({ name }) => void (vault.fault = name),
  calls: () => vault.calls.splice(0),
  actions: () => vault.calls.map(actionOf),
  errors: () => vault.errors.splice(0),
};

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
say({ ready: true });
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { do: what, ...asked } = JSON.parse(line);
  try {
    say({ result: (await hand[what](asked)) ?? null });
  } catch (error) {
    say({ error: String(error) });
  }
}
await browser.close();
process.exit(0);
