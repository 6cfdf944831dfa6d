// A stand-in for Obsidian, for the companion plugin: what it uses of the app's interface, over real CodeMirror editors.
// What the app does is taken from its public types, help and release notes; where nothing is published, the comment says so.
import { history, historyKeymap, defaultKeymap, redo, redoDepth, undo, undoDepth } from "@codemirror/commands";
import * as commandsModule from "@codemirror/commands";
import * as state from "@codemirror/state";
import * as view from "@codemirror/view";

const { EditorState, Transaction, Compartment } = state;
const { EditorView, keymap } = view;
const AUTOSAVE = 2000; // ms after the last key, as the types of TextFileView.requestSave say

class Events {
  #handlers = new Map();
  on(name, handler) {
    if (!this.#handlers.has(name)) this.#handlers.set(name, new Set());
    this.#handlers.get(name).add(handler);
    return () => this.#handlers.get(name).delete(handler);
  }
  trigger(name, ...data) {
    for (const handler of this.#handlers.get(name) ?? []) handler(...data);
  }
}

class TFile {
  constructor(path) { this.path = path; }
  get extension() { return this.path.split(".").pop(); }
}

class FileSystemAdapter {
  constructor(base) { this.base = base; }
  getBasePath() { return this.base; }
}

class Editor {
  constructor(cm) { this.cm = cm; }
  get doc() { return this.cm.state.doc; }
  getValue() { return this.doc.toString(); }
  offsetToPos(offset) {
    const line = this.doc.lineAt(Math.max(0, Math.min(offset, this.doc.length)));
    return { line: line.number - 1, ch: Math.max(0, Math.min(offset, this.doc.length)) - line.from };
  }
  posToOffset({ line, ch }) {
    const at = this.doc.line(Math.min(line + 1, this.doc.lines));
    return Math.min(at.to, at.from + ch);
  }
  getRange(from, to) { return this.doc.sliceString(this.posToOffset(from), this.posToOffset(to)); }
  getCursor(side) {
    const main = this.cm.state.selection.main;
    return this.offsetToPos(main[side ?? "head"]);
  }
  listSelections() {
    return this.cm.state.selection.ranges.map(({ anchor, head }) => ({ anchor: this.offsetToPos(anchor), head: this.offsetToPos(head) }));
  }
  setSelection(anchor, head) { this.cm.dispatch({ selection: { anchor: this.posToOffset(anchor), head: this.posToOffset(head ?? anchor) } }); }
  // How the app builds its transaction is not published: here all changes go in one, the origin as CodeMirror's user event.
  transaction({ changes = [] }, origin) {
    const places = changes.map(({ from, to, text }) => ({ from: this.posToOffset(from), to: this.posToOffset(to ?? from), insert: text }));
    this.cm.dispatch({ changes: places, annotations: origin ? [Transaction.userEvent.of(origin)] : [] });
  }
  undo() { undo(this.cm); }
  redo() { redo(this.cm); }
}

class TextFileView {
  file = null;
  lastSavedData = null;
  saving = false;
  saveAgain = false;
  constructor(app) { this.app = app; }
  get unsaved() { return this.file !== null && this.lastSavedData !== this.getViewData(); }
  async load(file) {
    if (this.unsaved) await this.save();
    this.file = file;
    this.lastSavedData = await this.app.vault.read(file);
    this.setViewData(this.lastSavedData, true);
  }
  requestSave() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.unsaved && this.save(), AUTOSAVE);
  }
  // Whether it leaves a note alone that has no unsaved words is not published: here it writes, which is the worst that it can do.
  async save() {
    clearTimeout(this.timer);
    if (this.saving) {
      this.saveAgain = true; // and back at once, as the app's own fields of these names suggest
      return;
    }
    const { file } = this;
    if (!file) return;
    this.saving = true;
    this.lastSavedData = this.getViewData();
    await window.__write(file.path, this.lastSavedData);
    this.saving = false;
    if (this.saveAgain) {
      this.saveAgain = false;
      if (this.unsaved) await this.save();
    }
  }
  // The release notes: without unsaved words the note is loaded anew and its undo is gone (0.13.16); with them both are merged, with a notice (0.11.6).
  modified(data) {
    if (this.saving || data === this.lastSavedData) return;
    if (this.unsaved) {
      if (data !== this.getViewData()) this.app.notices.push(`“${this.file.path}” has been modified externally, merging changes automatically.`);
      this.lastSavedData = data;
      return;
    }
    this.lastSavedData = data;
    this.setViewData(data, false);
  }
  close() {
    clearTimeout(this.timer);
    this.file = null;
  }
}

class MarkdownView extends TextFileView {
  #mode = "source";
  #extensions = new Compartment();
  constructor(app, parent) {
    super(app);
    this.dom = parent.ownerDocument.createElement("div");
    parent.append(this.dom);
    this.cm = new EditorView({ parent: this.dom, root: parent.ownerDocument, state: this.#state("") });
    this.editor = new Editor(this.cm);
  }
  #state(doc) {
    const own = EditorView.updateListener.of((update) => {
      if (!update.docChanged || update.transactions.some((each) => each.annotation(state.Transaction.remote))) return;
      this.requestSave();
      // The other panes of the note follow before it is saved (event quick-preview).
      for (const other of this.app.workspace.views(this.file)) if (other !== this) other.follow(this.getViewData());
    });
    const keys = keymap.of([...defaultKeymap, ...historyKeymap]);
    const several = EditorState.allowMultipleSelections.of(true);
    return EditorState.create({ doc, extensions: [history(), keys, several, own, this.#extensions.of(this.app.extensions)] });
  }
  reconfigure() { this.cm.dispatch({ effects: this.#extensions.reconfigure(this.app.extensions) }); }
  getMode() { return this.#mode; }
  setMode(mode) {
    this.#mode = mode;
    this.dom.style.display = mode === "source" ? "" : "none";
    this.app.workspace.trigger("layout-change");
  }
  getViewData() { return this.editor.getValue(); }
  // An editor has line feeds only, and what it saves as well: what the app does with CRLF on saving is not published.
  setViewData(data) { this.cm.setState(this.#state(data)); }
  get unsaved() { return this.file !== null && this.lastSavedData.replace(/\r\n?/g, "\n") !== this.getViewData(); }
  follow(text) {
    const now = this.getViewData();
    if (text === now) return;
    let start = 0;
    while (start < Math.min(now.length, text.length) && now[start] === text[start]) start += 1;
    let end = 0;
    while (end < Math.min(now.length, text.length) - start && now[now.length - 1 - end] === text[text.length - 1 - end]) end += 1;
    const annotations = [Transaction.remote.of(true), Transaction.addToHistory.of(false)];
    this.cm.dispatch({ changes: { from: start, to: now.length - end, insert: text.slice(start, text.length - end) }, annotations });
    this.lastSavedData ??= now;
  }
  close() {
    super.close();
    this.cm.destroy();
    this.dom.remove();
  }
}

class EmptyView {
  close() {}
}

class WorkspaceLeaf {
  view = new EmptyView();
  ephemeral = null;
  constructor(app, parent) { this.app = app; this.parent = parent; }
  getViewState() { return { type: "markdown", state: this.view.file ? { file: this.view.file.path, mode: this.view.getMode() } : {} }; }
  async openFile(file) {
    if (!(this.view instanceof MarkdownView)) this.view = new MarkdownView(this.app, this.parent);
    await this.view.load(file);
    this.app.workspace.trigger("file-open", file);
  }
  // Not published: the line goes to the top of the view, and the cursor there.
  setEphemeralState({ line }) {
    this.ephemeral = { line };
    const { editor } = this.view;
    if (this.view.getMode?.() === "source") editor.setSelection({ line, ch: 0 });
  }
  async detach() {
    if (this.view.unsaved) await this.view.save();
    this.view.close();
    this.app.workspace.remove(this);
  }
}

class Workspace extends Events {
  leaves = [];
  active = null;
  constructor(app) { super(); this.app = app; }
  views(file) { return this.leaves.map((leaf) => leaf.view).filter((each) => each.file && each.file === file); }
  getLeaf(kind) {
    if (!kind && this.active) return this.active;
    let parent = document.body;
    if (kind === "window") {
      const frame = document.createElement("iframe"); // a document and window of its own, as a pop-out window has
      document.body.append(frame);
      parent = frame.contentDocument.body;
    }
    const leaf = new WorkspaceLeaf(this.app, parent);
    this.leaves.push(leaf);
    return leaf;
  }
  setActiveLeaf(leaf, { focus } = {}) {
    this.active = leaf;
    if (focus) leaf.view.cm?.focus();
    this.trigger("active-leaf-change", leaf);
  }
  async revealLeaf() {}
  remove(leaf) {
    this.leaves = this.leaves.filter((each) => each !== leaf);
    if (this.active === leaf) this.active = this.leaves.at(-1) ?? null;
    this.trigger("layout-change");
  }
  iterateAllLeaves(callback) { this.leaves.forEach((leaf) => callback(leaf)); }
  getMostRecentLeaf() { return this.active; }
  getActiveFile() { return this.active?.view.file ?? null; }
  getActiveViewOfType(type) { return this.active?.view instanceof type ? this.active.view : null; }
}

class Vault extends Events {
  #files = new Map();
  constructor(base) { super(); this.adapter = new FileSystemAdapter(base); }
  add(path) { if (!this.#files.has(path)) this.#files.set(path, new TFile(path)); }
  getFileByPath(path) { return this.#files.get(path) ?? null; }
  read(file) { return window.__read(file.path); }
  move(file, path) {
    const old = file.path;
    this.#files.delete(old);
    file.path = path;
    this.#files.set(path, file);
    this.trigger("rename", file, old);
  }
  remove(path) {
    const file = this.#files.get(path);
    this.#files.delete(path);
    return file;
  }
}

const handlers = new Map();

class Plugin {
  #undo = [];
  constructor(app, manifest) { this.app = app; this.manifest = manifest; }
  register(undo) { this.#undo.push(undo); }
  registerEvent(off) { this.register(off); }
  registerEditorExtension(extension) {
    this.app.extend(extension);
    this.register(() => this.app.extend(extension, false));
  }
  // Whether the app takes a handler away with its plugin is not published; the types say that a second of its name is an error.
  registerCliHandler(name, _description, _flags, handler) {
    if (handlers.has(name)) throw new Error(`CLI command "${name}" is already registered`);
    handlers.set(name, handler);
    this.register(() => handlers.delete(name));
  }
  unload() { this.#undo.splice(0).forEach((undo) => undo()); }
}

class App {
  extensions = [];
  notices = [];
  ran = [];
  plugins = { manifests: {} };
  constructor(base, paths) {
    this.vault = new Vault(base);
    this.workspace = new Workspace(this);
    paths.forEach((path) => this.vault.add(path));
    const list = [
      { id: "editor:toggle-bold", name: "Toggle bold" },
      { id: "app:delete-file", name: "Delete current file" },
      { id: 'quickadd:choice:ab 1"x', name: `QuickAdd: it's "odd" & 5 %` },
      { id: "workspace:unready", name: "Not now", check: false },
      { id: "quickadd:broken", name: "Broken", fails: true },
    ];
    this.plugins.manifests.quickadd = {};
    this.commands = {
      listCommands: () => list,
      executeCommandById: (id) => {
        const command = list.find((each) => each.id === id);
        if (!command || command.check === false) return false;
        if (command.fails) throw new Error("no choice of that name");
        this.ran.push(id);
        command.act?.();
        return true;
      },
    };
  }
  extend(extension, there = true) {
    this.extensions = there ? [...this.extensions, extension] : this.extensions.filter((each) => each !== extension);
    this.workspace.leaves.forEach(({ view: each }) => each.reconfigure?.());
  }
  /** What the folder's watcher saw. */
  changed(path, data) {
    if (data === null) {
      const file = this.vault.remove(path);
      for (const leaf of this.workspace.leaves.filter((each) => file && each.view.file === file)) {
        leaf.view.close();
        leaf.view = new EmptyView();
        this.workspace.trigger("layout-change");
      }
      return;
    }
    this.vault.add(path);
    this.workspace.views(this.vault.getFileByPath(path)).forEach((each) => each.modified(data));
  }
  /** A person renames a note in the app. */
  async rename(path, to) {
    await window.__rename(path, to);
    this.vault.move(this.vault.getFileByPath(path), to);
  }
  depths() {
    const now = this.workspace.active.view.cm.state;
    return { undo: undoDepth(now), redo: redoDepth(now) };
  }
}

const modules = {
  obsidian: { Plugin, MarkdownView, TextFileView, FileSystemAdapter, TFile, WorkspaceLeaf },
  "@codemirror/state": state,
  "@codemirror/view": view,
  "@codemirror/commands": commandsModule,
};

window.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
window.cm = { state, view, commands: commandsModule };
window.start = (base, paths, source, manifest) => {
  window.app = new App(base, paths);
  window.enable = () => {
    const module = { exports: {} };
    const required = (name) => {
      if (!(name in modules)) throw new Error(`Cannot find module '${name}'`);
      return modules[name];
    };
    new Function("require", "module", "exports", source)(required, module, module.exports);
    window.plugin = new (module.exports.default ?? module.exports)(window.app, manifest);
    window.plugin.onload();
  };
  window.enable();
};
window.show = async (path, newTab) => {
  const leaf = window.app.workspace.getLeaf(newTab ? "tab" : false);
  const file = window.app.vault.getFileByPath(path);
  if (!file) return `Error: File "${path}" not found.`;
  await leaf.openFile(file);
  window.app.workspace.setActiveLeaf(leaf, { focus: true });
  return `Opened: ${path}`;
};
window.handle = (name, parameters) => (handlers.has(name) ? handlers.get(name)(parameters) : null);
