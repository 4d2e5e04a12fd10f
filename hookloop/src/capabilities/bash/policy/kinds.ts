/**
 * What a value or an operand may be. A grammar names one of these, or lists the values itself. Everything else is not known to be
 * harmless.
 */
export const kinds: { readonly [name: string]: (value: string) => boolean } = {
  any: () => true,
  /** Also a word that begins with a dash. */
  all: () => true,
  /** A path as it is, not an expansion, and not a connection of gawk. */
  path: (value) => !/^\/+inet/.test(value),
  /** A file to read. In quotes an expansion may begin with a dash: no option of the program does harm. */
  file: () => true,
  /** A value that is the next word: attached to the option, its letters would be options. */
  next: () => true,
  number: (value) => /^[-+]?[\d.]+[a-zA-Z%]*$/.test(value),
  count: (value) => /^\d+$/.test(value),
  /** A path below the working directory, or a pattern of paths. The first character rules out options and response files. */
  below: (value) =>
    /^(?:\.\/|\.$|[\w*[{(])/.test(value) &&
    !/(?:^|\/)(?:\.\.(?:\/|$)|\.{1,2}[*?[])/.test(value) && // a pattern may match `..`
    !/^\w+:(?!:)/.test(value),
  /** The same without a file that a redirection may have written: it is run, or read as settings. */
  code: (value) => kinds['below']!(value) && !mayBeData(value),
  /** The same as `below` without hidden files and installed packages, which other programs run or read as their settings. */
  work: (value) =>
    (kinds['below']!(value) && !PROTECTED.test(value)) ||
    /^(?:[\w-]+\/)*\.(?:env(?:\.\w+)?|gitignore|gitkeep)$/.test(value),
  /** A folder in the working directory, also a hidden one. */
  folder: (value) => !/^[-/~]|(?:^|\/)\.\.(?:\/|$)|(?:^|\/)\.git(?:\/|$)/i.test(value),
  /** Packages of Go without a version, which would be downloaded. */
  unversioned: (value) => kinds['below']!(value) && !value.includes('@'),
  data: (value) => value === '/dev/null' || isDataFile(value),
  /** A file for tar, where a colon is a host. */
  local: (value) => !value.includes(':'),
  /** The name of a remote of git, or its address on another host: not a folder, or the name of a helper program. */
  remote: (value) => /^(?:(?:https?|ssh|git):\/\/\w|[\w.-]+@[\w.-]+:(?!:)|(?!.*\.git$)\w[\w.-]*$)/.test(value),
  ref: (value) => !value.includes('::'),
  http: (value) => /^(?:https?:\/\/|(?!\w+:\/))[\w[][\w.:[\]-]*(?:[/?][^\s{}]*)?$/.test(value),
  /** Not a file that is read in place of the value. */
  text: (value) => !value.startsWith('@') && !value.includes('%output{'),
  /** Checking a signature runs a program. */
  format: (value) => !/%[-+ ]?G|signature/.test(value),
  target: (value) => /^(?:\w[\w./:@%+-]*|(?:V|VERBOSE|DEBUG|CI)=\w*)$/.test(value),
  /** A package of a registry: not a path, an address or an archive, which would run its own scripts. */
  package: (value) =>
    /^(?:@[\w.-]+\/)?\w[\w.-]*(?:\[[\w,.-]+\])?(?:(?:@|[=~<>!]=)[\w^~*][\w.*-]*)?$/.test(value) &&
    !/\.(?:tar(?:\.\w+)?|t[gbxl]z\d?|gz|bz2|xz|zip|whl|egg)(?:\[|$)/i.test(value),
  source: (value) => /^(?:[\w-]+\/)*[\w.-]+\.(?:c|cc|cpp|cxx|h|hpp|o|s)$/.test(value) && !value.startsWith('-'),
  /** A program that a compiler writes: not a script or a file that other programs read, such as `Makefile`. */
  binary: (value) =>
    /^(?:[\w-]+\/)*\w[\w-]*(?:\.(?:o|so|exe|out))?$/.test(value) &&
    !/(?:^|\/)(?:\w*file|gradlew|mvnw|configure|manage|node_modules\/.*|v?env\/.*)$/i.test(value),
  output: (value) =>
    /^(?:json|yaml|name|wide|(?:jsonpath|jsonpath-as-json|custom-columns|go-template)=.*)$/.test(value),
  /** What kubectl may show: a secret has credentials. */
  resource: (value) => !/secret/i.test(value),
  /** Not a repository of another host, which gets the token of GitHub Enterprise. */
  github: (value) =>
    !/^(?!(?:https:\/\/)?github\.com\/)(?:[\w+.-]+:\/\/|[\w.-]+@|[\w-]*[.:][\w.:-]*\/[^/\s]+\/|localhost\b)/i.test(
      value,
    ),
  /** A setting of git that only changes what it prints. */
  setting: (value) =>
    /^(?:(?:color|advice)\.[\w.]+=\w+|core\.quotepath=\w+|core\.pager=cat|user\.(?:name|email)=[\w .@+-]*)$/i.test(
      value,
    ),
  /** The name of a setting, not a subcommand. */
  key: (value) => /^[\w-]+\.[\w.-]+$/.test(value),
  /** A workspace: its name, or a path below the working directory, with the dots that add what depends on it. */
  project: (value) =>
    /^(?:\.\.\.)?\^?!?(?:(?:@[\w.*-]+\/)?[\w*][\w.*-]*|\.(?:\/[\w./*-]*)?|\{[\w./*-]+\})(?:\^?\.\.\.)?$/.test(value) &&
    !/(?:^|\/)\.\.(?:\/|$)/.test(value),
  /** Options of the shell that end a script early. */
  shellopt: (value) => /^(?:[-+](?:[eu]{1,2}o?|o)|pipefail|errexit|nounset)$/.test(value),
  exported: (value) => /^\w+=/.test(value) && isSafeAssignment(...(value.split(/=(.*)/s) as [string, string])),
  /** The usual name of a script: another word may be a file, a program, or a subcommand that installs or runs one. */
  script: (value) => SCRIPT.test(value),
  /** Any script, but not the builtin one that prints the environment. */
  task: (value) => value !== 'env',
  /** What lsof looks for, without the name of a host. */
  port: (value) => /^[46]?(?:tcp|udp)?(?::[\d,-]+)?$/i.test(value),
  endpoint: (value) => /^\/?\w[\w./?=&{}%-]*$/.test(value),
  /** Levels of lints. Other options for the compiler write files or load libraries. */
  lint: (value) => /^(?:-[ADFW][\w:-]*|\w[\w:-]*)$/.test(value),
  /** Options for the tests of cargo. Another one writes a file. */
  libtest: (value) =>
    /^(?:[^-].*|-q|--(?:nocapture|ignored|include-ignored|exact|show-output|skip|test-threads(?:=\d+)?))$/.test(value),
  rustfmt: (value) => /^(?:--check|-v|--verbose|-l)$/.test(value),
  dockerfile: (value) => kinds['below']!(value) && /(?:^|\/)(?:Dockerfile[\w.-]*|[\w.-]+\.Dockerfile)$/.test(value),
  compose: (value) => kinds['below']!(value) && /(?:^|\/)(?:docker-)?compose[\w.-]*\.ya?ml$/.test(value),
  plus: (value) => value.startsWith('+'),
  /** Letters of `ps` without a dash. The letters `e` and `E` would show the environment of processes. */
  ps: (value) => /^(?:[a-df-zA-DF-Z]+|\d+)$/.test(value),
  columns: (value) => !/env/i.test(value),
  tar: (value) => /^[tvzjJ]*f?$/.test(value),
  test: (value) => value !== '-v' && value !== '-R',
  /** Lines to print or to delete, by number. */
  sed: (script) => /^(?:\d+|\$)(?:,(?:\d+|\$))?[pd]$/.test(script),
  /** Fields to print. */
  awk: (program) => /^\{ ?print(?: \$(?:\d+|NF)(?:, ?\$(?:\d+|NF))*)? ?\}$/.test(program),
  jq: (program) =>
    !isDataFile(program) && !/(?<![.\w"$])(?:env|import|include|modulemeta)\b|(?<![.\w"])ENV\b/.test(program),
  yq: (program) =>
    /^(?!.*\/\/)[\w./-]+\.(?:ya?ml|json|xml|toml|csv|tsv|properties)$/.test(program) ||
    !/(?<![.\w"])(?:strenv|env|import|include|modulemeta|system|exec|ENV)/.test(program),
  /** Without the conversion that stores the number of characters. */
  printf: (format) => !/%[^a-zA-Z%]*[hlLjzt]*n/.test(format),
  /** The name of a program, file or package that is run: only a rule can allow it. */
  run: () => false,
}

/** Hidden files, installed packages, patterns that may match them, and everything in a folder. */
const PROTECTED =
  /(?:^|\/)(?:\.[^./]|node_modules(?:\/|$)|(?=[^/]*[*?])[^/.]+(?:\/|$)|(?!\[[\w.]+\](?:\/|$))[^/]*\[)|\/\.\/?$/i

const SCRIPT =
  /^(?!(?:coverage|docs)$)(?:[\w-]+:)?(?:run|test|tests|build|dev|start|lint|format|check|type-?check|types|e2e|ci|clean|compile|coverage|unit|integration|docs|preview|generate|codegen)(?::[\w:-]+)?$/

/** Names of files that no program runs or reads as its settings. A redirection may write them below the working directory. */
export function isDataFile(path: string): boolean {
  return DATA_FILE.test(path) && !READ_BY_PROGRAMS.test(path)
}

/** Whether a path or a pattern may be such a file, in another spelling. */
export function mayBeData(path: string): boolean {
  const plain = path
    .split('::')[0]!
    .replace(/[*?[\]{}]+/g, 'a')
    .toLowerCase()
  return isDataFile(plain.slice(plain.lastIndexOf('/') + 1))
}

const FOLDERS = String.raw`(?:\.\/)?(?:[A-Za-z0-9_][\w-]*(?:\.[\w-]+)*\/)*`
const BY_EXTENSION = String.raw`[A-Za-z0-9_][\w.-]*\.(?:log|txt|csv|tsv|diff|patch|tmp|out|err)`
/** Files with these extensions are often settings, so their names must say that they are not. */
const RESULTS = 'out|output|results?|report|response|dump|audit|outdated|deps|stats|summary|before|after|notes|todo'
const BY_NAME = String.raw`(?:[A-Za-z0-9_][\w.-]*[-_])?(?:${RESULTS})\.(?:json|xml|html|md|ya?ml)`
const DATA_FILE = new RegExp(`^(?!.{1000})${FOLDERS}(?:${BY_EXTENSION}|${BY_NAME})$`)
const READ_BY_PROGRAMS =
  /(?:^|\/)(?:a\.out|cmakelists.*|meson.*|test.*\.txt|.*(?:requirements|constraints|compose|dockerfile|makefile).*|modules\.txt|entry_points\.txt|conanfile\.txt)$|(?:^|\/)(?:node_modules|patches)\//i

/** Whether a variable before a command changes only how it prints, or a mode that projects define. */
export function isSafeAssignment(name: string, value: string): boolean {
  if (/^(?:GIT_|MAN)?PAGER$/.test(name)) return value === 'cat' || value === ''
  return safeVariables.has(name) && /^(?!.*\.\.)(?:[\w.,*+:][\w.,*+:/@-]*)?$/.test(value)
}

const safeVariables: ReadonlySet<string> = new Set(
  `CI NODE_ENV FORCE_COLOR NO_COLOR CLICOLOR DEBUG VERBOSE LOG_LEVEL PORT TZ LANG LC_ALL LC_COLLATE LC_CTYPE COLUMNS RUST_BACKTRACE
  RUST_LOG GOOS GOARCH CGO_ENABLED PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE NODE_NO_WARNINGS`.split(/\s+/),
)
