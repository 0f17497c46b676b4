// Checks TypeScript files with the compiler's own library, and writes {"diagnostics": [...]} to stdout.
//   tsc.js [--typescript FOLDER] [--modules FOLDER] [--edition es2022] [--platform node] [--strict true] FILE...
// typescript: folder of the package; without it, that of the `tsc` on PATH. modules: a node_modules folder whose packages may be
// imported. Without files, the version is printed.
// Comments and directives of a file that configure the compiler are not obeyed. Deprecated calls are suggestions of the language
// service. An error that is none with the newest library has the code TSnnnn-newer: the symbol exists, and not on the target.
"use strict";
const fs = require("fs");
const path = require("path");

process.on("uncaughtException", (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(2);
});

const settings = {};
const files = process.argv.slice(2);
while (files.length && files[0].startsWith("--")) {
  const [name, value] = files.splice(0, 2);
  settings[name.slice(2)] = value;
}
const { typescript, modules, platform } = settings;

function findTypescript() {
  if (typescript) return path.resolve(typescript, "lib", "typescript.js");
  for (const folder of (process.env.PATH || "").split(path.delimiter)) {
    const program = path.join(folder, "tsc");
    if (fs.existsSync(program)) return path.resolve(path.dirname(fs.realpathSync(program)), "..", "lib", "typescript.js");
  }
  throw new Error("there is no tsc on PATH");
}

const library = findTypescript();
const ts = require(library);
if (files.length === 0) {
  process.stdout.write(`Version ${ts.version}\n`);
  process.exit(0);
}

const own = new Map(files.map((name) => [path.resolve(name), name]));

function options(edition) {
  const lib = [`lib.${edition}.d.ts`, ...(platform === "node" ? [] : ["lib.dom.d.ts", "lib.dom.iterable.d.ts"])];
  const available = !modules ? {} : { paths: { "*": [`${modules}/*`, `${modules}/@types/*`] } };
  const types = modules && fs.existsSync(path.join(modules, "@types", "node")) && platform === "node" ? ["node"] : [];
  return {
    ...available, lib, types, typeRoots: !modules ? [] : [path.join(modules, "@types")],
    target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler,
    strict: settings.strict === "true", noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true,
    jsx: ts.JsxEmit.Preserve, allowJs: false,
  };
}

const missing = files.filter((name) => !fs.existsSync(name));
if (missing.length) throw new Error(`not there: ${missing.join(", ")}`);
const edition = (settings.edition || "esnext").toLowerCase();
if (!fs.existsSync(path.join(path.dirname(library), `lib.${edition}.d.ts`))) throw new Error(`unknown edition ${edition}`);

const registry = ts.createDocumentRegistry();
const acquire = registry.acquireDocumentWithKey.bind(registry);
registry.acquireDocumentWithKey = (fileName, ...rest) => {
  const source = acquire(fileName, ...rest);
  if (own.has(path.resolve(fileName))) {
    source.commentDirectives = undefined;
    source.checkJsDirective = undefined;
    source.libReferenceDirectives = [];
    source.referencedFiles = [];
    source.typeReferenceDirectives = [];
  }
  return source;
};

function service(compilerOptions) {
  return ts.createLanguageService({
    getCompilationSettings: () => compilerOptions,
    getScriptFileNames: () => [...own.keys()],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) => fs.existsSync(name) ? ts.ScriptSnapshot.fromString(fs.readFileSync(name, "utf8")) : undefined,
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists, readFile: ts.sys.readFile, readDirectory: ts.sys.readDirectory,
    directoryExists: ts.sys.directoryExists, getDirectories: ts.sys.getDirectories,
  }, registry);
}

function errors(checker) {
  return [...own.keys()].flatMap((name) => [...checker.getSyntacticDiagnostics(name), ...checker.getSemanticDiagnostics(name)])
    .filter((each) => each.category === ts.DiagnosticCategory.Error);
}

const place = (each) => `${each.file && each.file.fileName}:${each.start}:${each.code}`;

function row(each, severity, code) {
  const { line } = each.file.getLineAndCharacterOfPosition(each.start);
  const message = ts.flattenDiagnosticMessageText(each.messageText, " ");
  const symbol = each.file.text.slice(each.start, each.start + each.length).replace(/^["']|["']$/g, "").slice(0, 80);
  return { file: own.get(path.resolve(each.file.fileName)) || each.file.fileName, line: line + 1, severity, code, symbol, message };
}

function qualified(each) {
  const end = each.start + each.length;
  let name = "";
  const visit = (node) => {
    if (node.pos > end || node.end < each.start) return;
    if (ts.isIdentifier(node) && node.end === end) {
      const checker = target.getProgram().getTypeChecker();
      const symbol = checker.getSymbolAtLocation(node);
      if (symbol) name = checker.getFullyQualifiedName(symbol).replace(/"/g, "");
    }
    ts.forEachChild(node, visit);
  };
  visit(each.file);
  return name;
}

function ambient(name, source) {
  const found = [];
  const visit = (node) => {
    if (ts.canHaveModifiers(node) && (ts.getModifiers(node) || []).some((each) => each.kind === ts.SyntaxKind.DeclareKeyword)) {
      const { line } = source.getLineAndCharacterOfPosition(node.getStart(source));
      found.push({ file: name, line: line + 1, severity: "note", code: "ambient", message: "declared, and not defined: it may not exist" });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

const target = service(options(edition));
const newest = new Set(edition === "esnext" ? [] : errors(service(options("esnext"))).map(place));
const diagnostics = errors(target).map((each) => {
  const isNewer = edition !== "esnext" && each.code >= 2000 && !newest.has(place(each));
  return row(each, "error", `TS${each.code}${isNewer ? "-newer" : ""}`);
});
for (const [full, name] of own) {
  const deprecated = target.getSuggestionDiagnostics(full).filter((each) => each.reportsDeprecated);
  diagnostics.push(...deprecated.map((each) => {
    const plain = row(each, "suggestion", `TS${each.code}`);
    return { ...plain, symbol: qualified(each) || plain.symbol };
  }));
  diagnostics.push(...ambient(name, target.getProgram().getSourceFile(full)));
}
process.stdout.write(JSON.stringify({ diagnostics }) + "\n");
