/* The colours of code. They are made here, not on the server: hostile text costs only the
 * tab that shows it, one pass over a bounded length, and nothing of it becomes markup. */
const MAX_CHARS = 20000;
const words = (text) => new Set(text.split(" "));
const C = words("abstract as async await bool boolean break byte case catch char class const continue debugger default defer delete do double else enum export extends extern final finally float fn for foreach from func function go goto if impl implements import in instanceof int interface let long loop match mod move mut namespace new null nil none operator package private protected pub public readonly ref return self short signed sizeof static struct super switch template this throw throws trait true false try type typedef typeof undefined union unsafe unsigned use using var virtual void volatile where while with yield string String map chan range select val fun when object override sealed");
const PYTHON = words("and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self print");
const SHELL = words("if then else elif fi for while do done case esac in function return exit export local set unset echo cd sudo source begin end puts require module unless until rescue ensure nil true false def class");
const SQL = words("select from where and or not in is null insert into values update set delete create table alter drop index view join left right inner outer on group by order having limit offset union all distinct as case when then else end primary key foreign references default begin commit rollback with like between exists");
const HASH = { words: SHELL, comment: "#[^\\n]*" };
const LANGUAGES = {
  python: { words: PYTHON, comment: "#[^\\n]*", string: "\"\"\"[^]*?(?:\"\"\"|$)|'''[^]*?(?:'''|$)|" },
  sql: { words: SQL, comment: "--[^\\n]*|/\\*[^]*?(?:\\*/|$)", anyCase: true },
  html: { words: new Set(), comment: "<!--[^]*?(?:-->|$)", extra: "</?[\\w-]+|/?>" },
  css: { words: new Set(), comment: "/\\*[^]*?(?:\\*/|$)", extra: "[@#.]?[\\w-]+(?=\\s*[:{])" },
  json: { words: words("true false null"), comment: "(?!)" },
};
const SAME = { py: "python", python3: "python", xml: "html", svg: "html", vue: "html", scss: "css", less: "css", postgresql: "sql", mysql: "sql", sqlite: "sql" };
for (const name of "sh bash zsh shell console yaml yml toml ini ruby rb perl r dockerfile makefile make elixir".split(" ")) LANGUAGES[name] = HASH;
for (const name of ["text", "txt", "plain", "plaintext", "markdown", "md", "diff", "math"]) LANGUAGES[name] = null;
const CLIKE = { words: C, comment: "//[^\\n]*|/\\*[^]*?(?:\\*/|$)" };
const rules = new Map();

function ruleOf(name) {
  const key = SAME[name] || name;
  const language = key in LANGUAGES ? LANGUAGES[key] : CLIKE;
  if (language && !rules.has(language)) {
    const string = `${language.string || ""}"(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\\\\\n]|\\\\.)*'?|\`(?:[^\`\\\\]|\\\\.)*\`?`;
    const parts = [`(${language.comment})`, `(${string})`, "(\\b\\d[\\w.]*)", `(${language.extra || "(?!)"})`, "([A-Za-z_$][\\w$]*)"];
    rules.set(language, { words: language.words, anyCase: language.anyCase, pattern: new RegExp(parts.join("|"), "g") });
  }
  return language && rules.get(language);
}

function kindOf(match, rule) {
  if (match[1] !== undefined) return "comment";
  if (match[2] !== undefined) return "string";
  if (match[3] !== undefined) return "number";
  if (match[4] !== undefined) return "keyword";
  const word = rule.anyCase ? match[5].toLowerCase() : match[5];
  return rule.words.has(word) ? "keyword" : "";
}

/* Colours an element's text as code in this language, unless it is long or not code. */
export function colour(code, language) {
  const text = code.textContent;
  const rule = ruleOf(language.toLowerCase());
  if (!rule || text.length > MAX_CHARS) return;
  const lit = document.createDocumentFragment();
  let plain = 0;
  for (const match of text.matchAll(rule.pattern)) {
    const kind = kindOf(match, rule);
    if (!kind) continue;
    lit.append(text.slice(plain, match.index));
    const span = document.createElement("span");
    span.className = `tok-${kind}`;
    span.textContent = match[0];
    lit.append(span);
    plain = match.index + match[0].length;
  }
  lit.append(text.slice(plain));
  code.replaceChildren(lit);
}
