import { isolateHistory } from "@codemirror/commands";
import { EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { FileSystemAdapter, MarkdownView, Plugin, TextFileView, TFile, WorkspaceLeaf } from "obsidian";

const PROTOCOL = 1;
const LONGEST_REPLY = 8 * 1024 * 1024; // characters, all of them ASCII
const LONGEST_WAIT = 25_000; // ms
const SAVING = { tries: 20, pause: 100 }; // the app may be writing or reloading the note

type Change = [from: number, to: number, text: string]; // places are UTF-16 units of the text before
type Reply = Record<string, unknown>;
interface Request {
  protocol?: number; vault?: string; action?: string; path?: string; paths?: string[]; text?: boolean; line?: number; newPane?: boolean;
  before?: string; after?: string; changes?: Change[]; id?: string; name?: string; since?: number; wait?: number;
}
/** Members that the public types of the app omit. */
interface Internals {
  commands: { listCommands(): { id: string; name: string }[]; executeCommandById(id: string): boolean };
  plugins?: { manifests?: Record<string, unknown> };
}

/** A refusal, with a code that obsidian-agent knows. */
class Refused extends Error {
  constructor(readonly code: string, message: string) { super(message); }
}

/** The SHA-256 of the text's UTF-8 bytes, in lower-case hex. */
async function sha256(text: string): Promise<string> {
  const digest = await window.crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The request in a parameter: base64url of a JSON object in UTF-8. */
function decoded(parameter: string): Request {
  const bytes = Uint8Array.from(window.atob(parameter.replace(/-/g, "+").replace(/_/g, "/")), (char) => char.charCodeAt(0));
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as Request;
}

function applied(text: string, changes: Change[]): string {
  const ends = [0, ...changes.map(([, to]) => to)];
  return changes.map(([from, , inserted], index) => text.slice(ends[index], from) + inserted).join("") + text.slice(ends[changes.length]);
}

/** A text as an editor has it: line feeds only, no byte order mark. */
const even = (text: string): string => text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");

/** A folder's path without what may be written in two ways: a slash at the end; on Windows slashes and the drive's letter. */
function folder(path: string): string {
  const same = /^[a-z]:/i.test(path) ? path.charAt(0).toUpperCase() + path.slice(1).replace(/\\/g, "/") : path;
  return same.replace(/(.)\/+$/, "$1");
}

const isSource = (view: TextFileView): view is MarkdownView => view instanceof MarkdownView && view.getMode() === "source";
const content = (view: TextFileView): string => (isSource(view) ? view.editor.getValue() : even(view.getViewData()));

/** Return true if a view may have unsaved text: not every version of the app reports it. */
function unsaved(view: TextFileView): boolean {
  const { lastSavedData } = view as { lastSavedData?: unknown };
  return typeof lastSavedData !== "string" || even(lastSavedData) !== content(view);
}

/** Answers obsidian-agent, through Obsidian's own command line: what is selected and open, and changes to notes that are open. */
export default class AgentCompanion extends Plugin {
  private readonly base = this.app.vault.adapter instanceof FileSystemAdapter ? this.app.vault.adapter.getBasePath() : "";
  private readonly internals = this.app as unknown as Internals;
  private version = Date.now(); // differs from earlier loads of the plugin
  private editing = false;
  private readonly waiting = new Set<() => void>();

  override onload(): void {
    const flags = { req: { value: "<request>", description: "The request, base64url of JSON", required: true } };
    this.registerCliHandler(this.manifest.id, "Answer obsidian-agent", flags, (params) => this.answer(params["req"] ?? ""));
    this.registerEditorExtension([
      // Of every editor, those in pop-out windows too.
      EditorView.updateListener.of((update) => (update.docChanged || update.selectionSet ? this.changed() : undefined)),
      // An edit is an undo step of its own, not joined with what is typed just before or after it.
      EditorState.transactionExtender.of(() => (this.editing ? { annotations: isolateHistory.of("full") } : null)),
    ]);
    const { workspace, vault } = this.app;
    this.registerEvent(workspace.on("active-leaf-change", this.changed));
    this.registerEvent(workspace.on("file-open", this.changed));
    this.registerEvent(workspace.on("layout-change", this.changed));
    this.registerEvent(vault.on("rename", this.changed));
    this.register(this.changed);
  }

  private readonly changed = (): void => {
    this.version += 1;
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  };

  private async answer(parameter: string): Promise<string> {
    let code = "BAD_REQUEST";
    try {
      const request = decoded(parameter);
      code = "FAILED";
      const line = this.line({ ok: true, ...(await this.handle(request)) });
      if (line.length > LONGEST_REPLY) throw new Refused("TOO_LARGE", "The reply is longer than 8 MB.");
      return line;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return this.line({ ok: false, code: error instanceof Refused ? error.code : code, message });
    }
  }

  /** A reply as one line of ASCII: the command line decodes each piece of it on its own. */
  private line(reply: Reply): string {
    const text = JSON.stringify({ protocol: PROTOCOL, vault: this.base, version: this.version, ...reply });
    return `OA1 ${text.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)}`;
  }

  private async handle(request: Request): Promise<Reply> {
    if (request.protocol !== PROTOCOL) throw new Refused("PROTOCOL", `This plugin speaks protocol ${PROTOCOL}.`);
    if (!request.vault || folder(request.vault) !== folder(this.base)) throw new Refused("OTHER_VAULT", "This is another vault.");
    const { path = "", paths = [], line = 0, id = "", name = "", since = 0, wait = 0 } = request;
    switch (request.action) {
      case "context": return this.context(request.text === true);
      case "settle": return { files: await Promise.all(paths.map((each) => this.settled(each))) };
      case "edit": return this.edit(request);
      case "open": return this.open(path, line, request.newPane === true);
      case "commands": return { commands: this.commands() };
      case "run": return this.run(id, name);
      case "watch": return this.watch(since, Math.min(wait, LONGEST_WAIT));
      default: throw new Refused("UNKNOWN_ACTION", `There is no action “${request.action}”.`);
    }
  }

  private leaves(): WorkspaceLeaf[] {
    const leaves: WorkspaceLeaf[] = [];
    this.app.workspace.iterateAllLeaves((leaf) => void leaves.push(leaf));
    return leaves;
  }

  /** The views that hold the text of a file (or of any), those that can be typed in first. */
  private views(path?: string): TextFileView[] {
    const views = this.leaves().map((leaf) => leaf.view).filter((view) => view instanceof TextFileView);
    const ours = views.filter(({ file }) => file && (path === undefined || file.path === path));
    return [...ours.filter(isSource), ...ours.filter((view) => !isSource(view))];
  }

  /** Return the active note, or the one beside the active panel. */
  private async context(withText: boolean): Promise<Reply> {
    const { workspace } = this.app;
    const recent = workspace.getMostRecentLeaf()?.view;
    const view = workspace.getActiveViewOfType(MarkdownView) ?? (recent instanceof MarkdownView ? recent : null);
    const open = [...new Set(this.views().flatMap((each) => each.file?.path ?? []))];
    const nothing = { mode: null, hash: null, length: 0, selections: [], selected: "", open };
    if (!view?.file) return { active: workspace.getActiveFile()?.path ?? null, ...nothing };
    // All of it is read before the hash is awaited: it belongs together.
    const [active, text, mode, { editor }] = [view.file.path, content(view), view.getMode(), view];
    const selections = (isSource(view) ? editor.listSelections() : []).map(({ anchor, head }) => {
      const [from, to] = [editor.posToOffset(anchor), editor.posToOffset(head)].sort((a, b) => a - b);
      return { anchor, head, from, to };
    });
    const selected = selections.length ? editor.getRange(editor.getCursor("from"), editor.getCursor("to")) : "";
    return { active, mode, length: text.length, selections, selected, open, hash: await sha256(text), ...(withText ? { text } : {}) };
  }

  /** Save now what the app would save two seconds after the last key, and tell what the note is then. */
  private async settled(path: string): Promise<Reply> {
    const [view] = this.views(path);
    if (!view?.file) return { path, open: false };
    const dirty = content(view) !== even(await this.app.vault.read(view.file));
    const saved = (await this.saved(view.file)) !== null;
    const mode = view instanceof MarkdownView ? view.getMode() : null;
    return { path, open: true, mode, hash: await sha256(content(view)), saved, dirty };
  }

  /** Return the normalized text of the file once every view of it shows that; null if they never agree. */
  private async saved(file: TFile): Promise<string | null> {
    for (let tries = 0; tries < SAVING.tries; tries++) {
      const holding = this.views(file.path).filter(unsaved);
      // Views that hold different words: to save one would lose the other's.
      if (new Set(holding.map(content)).size === 1) await holding[0]?.save();
      const disk = even(await this.app.vault.read(file));
      if (this.views(file.path).every((view) => content(view) === disk)) return disk;
      await sleep(SAVING.pause);
    }
    return null;
  }

  /** Change an open note in its editor, as one undo step, and save it. */
  private async edit({ path = "", changes = [], ...hash }: Request): Promise<Reply> {
    const view = this.views(path).at(0);
    if (!view?.file) throw new Refused("NOT_OPEN", "The note is not open.");
    if (!isSource(view)) throw new Refused("NOT_SOURCE", "The note is open, but not for editing.");
    const { file, editor } = view;
    const before = editor.getValue();
    const after = applied(before, changes);
    const hashes = [await sha256(before), await sha256(after)];
    // From here to the last check nothing is awaited, so no key comes between.
    const same = isSource(view) && this.views(path).every((each) => each.file === file && content(each) === before);
    if (hashes[0] !== hash.before || !same) throw new Refused("STALE", "The note is not what it was.");
    const different = new Refused("DIFFERENT", "The changes make something else of the note.");
    if (hashes[1] !== hash.after) throw different;
    const at = (place: number) => editor.offsetToPos(place);
    this.editing = true;
    try {
      editor.transaction({ changes: changes.map(([from, to, text]) => ({ from: at(from), to: at(to), text })) }, "agent");
    } finally {
      this.editing = false;
    }
    if (editor.getValue() !== after) {
      if (editor.getValue() !== before) editor.undo();
      throw different;
    }
    const disk = await this.saved(file);
    if (disk === null) throw new Refused("UNSAVED", "The change stands in the editor, but the file does not read so.");
    return { saved: true, hash: await sha256(disk) };
  }

  private async open(path: string, line: number, newPane: boolean): Promise<Reply> {
    const { vault, workspace } = this.app;
    const file = vault.getFileByPath(path);
    if (!file) throw new Refused("NOT_FOUND", "There is no such file.");
    const shown = newPane ? undefined : this.leaves().find((each) => each.getViewState().state?.["file"] === path);
    const leaf = shown ?? workspace.getLeaf(newPane ? "tab" : false);
    await (shown ? workspace.revealLeaf(shown) : leaf.openFile(file));
    workspace.setActiveLeaf(leaf, { focus: true });
    if (line > 0) leaf.setEphemeralState({ line: line - 1 });
    return { opened: true };
  }

  private commands(): Reply[] {
    const { commands, plugins } = this.internals;
    return commands.listCommands().map(({ id, name }) => {
      const [plugin = ""] = id.split(":");
      return { id, name, source: Object.hasOwn(plugins?.manifests ?? {}, plugin) ? plugin : "core" };
    });
  }

  /** Run the command that was shown to the user: id and name must both match the list. */
  private run(id: string, name: string): Reply {
    const command = this.internals.commands.listCommands().find((each) => each.id === id);
    if (!command) throw new Refused("COMMAND_NOT_FOUND", "There is no such command now.");
    if (command.name !== name) throw new Refused("STALE", `The command is called “${command.name}” now.`);
    return { executed: this.internals.commands.executeCommandById(id) };
  }

  /** The context, once something moved after `since` or `wait` ms have gone by. */
  private async watch(since: number, wait: number): Promise<Reply> {
    if (this.version === since) {
      await Promise.race([sleep(wait), new Promise<void>((wake) => this.waiting.add(wake))]);
      await sleep(50); // moves come in bunches
    }
    return this.context(false);
  }
}
