import { gitDangers } from './git-dangers.ts'
import {
  operandsOf,
  optionsBut,
  optionsOf,
  shown,
  type Danger,
  type SafeOptions,
  type UnsafeOptions,
} from './options.ts'
import { baseName } from './rules.ts'
import { isHarmlessSed } from './sed-script.ts'

/**
 * The words of a command that make an otherwise safe program run commands or write files, or that are unknown. A rule covers them only by
 * naming them.
 */
export function dangersIn(argv: readonly string[]): readonly Danger[] {
  const judge = judgeOf(argv[0]!)
  if (judge !== undefined) return judge(argv)
  return isInterpreter(baseName(argv[0]!)) ? interpreter(argv) : optionsExactly(everywhere, argv)
}

/** Whether the arguments of a program are known, so that an argument that looks like a program is not run. */
export function isKnownProgram(program: string): boolean {
  return judgeOf(program) !== undefined || knownToRunNothing.has(baseName(program))
}

/** By name, also with the prefix `g` that GNU programs have on other systems. */
function judgeOf(program: string): Judge | undefined {
  const name = baseName(program)
  const known = [name, name.replace(/^g/, '')].find((each) => Object.hasOwn(programs, each))
  return known === undefined ? undefined : programs[known]
}

type Judge = (argv: readonly string[]) => readonly Danger[]

/** Programs that run files or code from their arguments: the rule must name these. */
const interpreters: ReadonlySet<string> = new Set(
  `python pypy ipython bpython ruby perl lua luajit php node nodejs deno bun ts-node tsx tclsh wish expect guile racket ghc ghci
  runghc runhaskell irb octave java jshell jjs jrunscript groovy scala julia r rscript osascript elixir iex erl escript swipl
  gnuplot m4 dc gdb lldb vi vim rvim gvim vimdiff nvim view rview ex ed red emacs nano pico joe micro less more most sqlite3 sqlite
  psql mysql mariadb ldd at batch crontab socat nc ncat netcat telnet ftp sftp scp screen tmux systemd-run openssl ssh su sudo
  doas runuser chroot unshare nsenter script parallel nix-shell tex latex pdftex pdflatex xetex xelatex luatex lualatex latexmk
  ansible ansible-playbook run-parts run-mailcap start-stop-daemon service msgfilter msgexec bpftrace tshark nmap original-awk
  sh bash dash ash zsh ksh mksh lksh rbash yash posh osh fish csh tcsh rc es elvish xonsh nu pwsh powershell`.split(
    /\s+/,
  ),
)

/** Also with a version in the name: `python3.12`. */
function isInterpreter(name: string): boolean {
  return interpreters.has(name) || interpreters.has(name.replace(/-?[\d.]+$/, ''))
}

const interpreter: Judge = (argv) => {
  if (argv.length === 1) return [{ index: 1, why: 'it runs its input' }]
  if (argv.length === 2 && /^(?:--version|--help|-V|-v|-h)$/.test(argv[1]!)) return []
  const first = argv.findIndex((word, index) => index > 0 && (word === '-' || !/^[-+]/.test(word)))
  const options = [...argv.keys()].slice(1, first === -1 ? argv.length : first)
  return [...new Set([1, ...options])].map((index) => ({ index, why: `${shown(argv[index]!)} is run` }))
}

/** Long options that run commands or change files in any program. */
const everywhere: ReadonlySet<string> = new Set(
  `exec exec-batch eval pre hostname-bin pager to-command checkpoint-action use-compress-program compress-program rsh
  rsh-command rsync-path upload-pack receive-pack ext-diff extcmd script-shell init-command init-file rcfile editor
  browser in-place inplace fix write post-renderer kubeconfig lua-filter shell-escape`.split(/\s+/),
)

function optionsExactly(names: ReadonlySet<string>, argv: readonly string[]): readonly Danger[] {
  return argv.flatMap((word, index) => {
    const isDanger = index > 0 && word.startsWith('--') && names.has(word.slice(2).split('=')[0]!)
    return isDanger ? [{ index, why: `${shown(word)} runs commands or writes files` }] : []
  })
}

const alwaysSafe: Judge = () => []
const onlySafe =
  (safe: SafeOptions): Judge =>
  (argv) =>
    optionsBut(safe, argv)
const noUnsafe =
  (unsafe: UnsafeOptions): Judge =>
  (argv) =>
    optionsOf(unsafe, argv)

/** Operands after the first ones would be written to. */
const atMost =
  (operands: number, unsafe: UnsafeOptions = {}): Judge =>
  (argv) => [...optionsOf(unsafe, argv), ...changed(argv, operandsOf(argv).slice(operands))]

function changed(argv: readonly string[], places: readonly number[]): readonly Danger[] {
  return places.map((index) => ({ index, why: `${shown(argv[index]!)} would be changed` }))
}

const words =
  (pattern: RegExp, why: string): Judge =>
  (argv) =>
    argv.flatMap((word, index) => (index > 0 && pattern.test(word) ? [{ index, why: `${shown(word)} ${why}` }] : []))

const FIND_TESTS =
  /^-(?:H|L|P|a|amin|and|anewer|atime|cmin|cnewer|ctime|daystart|d|depth|empty|executable|false|follow|fstype|gid|group|i?lname|i?name|i?path|i?regex|i?wholename|inum|links|ls|maxdepth|mindepth|mmin|mount|mtime|newer(?:[aBcm][aBcmt])?|nogroup|noleaf|not|nowarn|warn|used|ignore_readdir_race|noignore_readdir_race|help|version|[EsxX]|O\d|nouser|o|or|perm|print|print0|printf|prune|quit|readable|regextype|samefile|size|true|type|uid|user|writable|xdev|xtype|\d.*)$/

/** `-perm -u+x` */
const FIND_MODE = /^-[ugoa]*[=+][rwxXst,ugoa=+]*$/

const find: Judge = (argv) =>
  argv.flatMap((word, index) => {
    const isKnown = index === 0 || !word.startsWith('-') || FIND_TESTS.test(word) || FIND_MODE.test(word)
    return isKnown ? [] : [{ index, why: `${shown(word)} is not known to be safe` }]
  })

const SED: SafeOptions = {
  flags: 'nErsuz',
  valued: 'e',
  long: `quiet silent regexp-extended expression separate unbuffered null-data posix debug sandbox version help`.split(
    /\s+/,
  ),
}

/** The script is the value of -e, or the first operand. */
const sed: Judge = (argv) => {
  const scripts = argv.flatMap((word, index) => {
    if (index > 0 && /^(?:-[nErsuz]*e|--expression)$/.test(argv[index - 1]!)) return [{ index, script: word }]
    const attached = /^(?:-[nErsuz]*e|--expression=)([^]+)$/.exec(word)?.[1]
    return attached === undefined ? [] : [{ index, script: attached }]
  })
  const [first] = operandsOf(argv)
  const all = scripts.length > 0 || first === undefined ? scripts : [{ index: first, script: argv[first]! }]
  const harmful = all.filter(({ script }) => !isHarmlessSed(script))
  return [
    ...optionsBut(SED, argv),
    ...harmful.map(({ index }) => ({ index, why: 'the script may run commands or write files' })),
  ]
}

/**
 * In an awk program: running, writing, reading, indirect calls and line continuations. Before the first print nothing can be
 * written or piped: `>` compares, and `|` is part of a pattern.
 */
const AWK_HARMFUL = /system|getline|@|\\\n|print[^]*[|>]/

const awk: Judge = (argv) => {
  let program = 1
  while (/^-[Fv]/.test(argv[program] ?? '')) program += argv[program]!.length === 2 ? 2 : 1
  if (argv[program] === '--') program += 1
  const isHarmful = AWK_HARMFUL.test((argv[program] ?? '').replace(/\|\||>=/g, ' '))
  return [
    ...optionsBut({ valued: 'Fv', long: ['version', 'help'] }, argv),
    ...(isHarmful ? [{ index: program, why: 'the program may run commands or write files' }] : []),
  ]
}

const date: Judge = (argv) => [
  ...optionsBut(
    {
      flags: 'uR',
      valued: 'dr',
      long: ['date', 'reference', 'iso-8601', 'rfc-3339', 'rfc-email', 'utc', 'universal', 'debug', 'version', 'help'],
    },
    argv.map((word) => (/^-u?I[a-z]*$/.test(word) ? '-u' : word)),
  ),
  ...operandsOf(argv)
    .filter((index) => !argv[index]!.startsWith('+') && !/^(?:-u?[dr]|--date|--reference)$/.test(argv[index - 1]!))
    .map((index) => ({ index, why: `${shown(argv[index]!)} would set the clock` })),
]

/** Letters without a dash are options too, and `e` shows the environment of processes. */
const ps: Judge = (argv) =>
  argv.flatMap((word, index) => {
    if (index === 0 || /^-[a-zA-Z]*[oOpCuUgGtsqkN]$|^--\w+$/.test(argv[index - 1]!)) return []
    const isShowing = /^[a-zA-Z]*e[a-zA-Z]*$|^-[a-zA-Z]*E/.test(word)
    return isShowing ? [{ index, why: 'it may show the environment of processes' }] : []
  })

const make: Judge = (argv) => [
  ...optionsOf({ letters: 'fCEI', long: ['file', 'makefile', 'directory', 'eval', 'include-dir'] }, argv),
  ...words(/^\w+[:+?!]*=/, 'changes what make runs')(argv),
]

/** Its input becomes arguments, also options: only programs without unsafe options may get them. */
const xargs: Judge = (argv) => {
  const run = argv.findIndex((word, index) => index > 0 && Object.hasOwn(programs, word))
  const isHarmless = argv.length === 1 || (run !== -1 && programs[argv[run]!] === alwaysSafe)
  return isHarmless ? [] : [{ index: argv.length, why: 'its input may become options' }]
}

const compiler = words(/^-(?:wrapper|fplugin|specs|B|Xclang|load)/, 'may run another program')

const containers = words(/^(?:run|exec|compose|build|buildx|cp|start|create)$/, 'runs commands elsewhere')

const NPM_SUBCOMMANDS = /^(?:exec|x|explore|edit|config|set|init|create|link|install-script|hook|publish|token|login)$/

const packageManager: Judge = (argv) => [
  ...(NPM_SUBCOMMANDS.test(argv[1] ?? '')
    ? [{ index: 1, why: `${argv[0]!} ${argv[1]!} runs commands or changes settings` }]
    : []),
  ...optionsOf(
    { long: ['script-shell', 'node-options', 'prefix', 'call', 'userconfig', 'globalconfig', 'shell'] },
    argv,
  ),
  ...(argv[1]?.startsWith('-') === true && !/^(?:--version|-v|--help|-h)$/.test(argv[1])
    ? [{ index: 1, why: `${shown(argv[1])} comes before the subcommand` }]
    : []),
]

/** The conversion that stores the number of characters written. */
const STORES = /%[-+ #0-9.*']*[hlLjzt]*n/

const printf: Judge = (argv) => {
  const isEnded = argv[1] === '--'
  const format = isEnded ? 2 : 1
  const sets = STORES.test(argv[format] ?? '') || (!isEnded && argv[1]?.startsWith('-') === true)
  return sets ? [{ index: format, why: `${shown(argv[format]!)} sets a variable` }] : []
}

/** Programs that do not run their arguments in normal use. */
const knownToRunNothing: ReadonlySet<string> = new Set(
  `jest vitest mocha ava tap pytest tsc eslint prettier oxlint biome brew apt-cache dpkg rpm pip pip3 pipx gem composer dnf yum apk
  pacman whereis whatis apropos info tldr help command systemctl journalctl rustc rustup terraform aws gcloud az`.split(
    /\s+/,
  ),
)

const programs: { readonly [name: string]: Judge } = {
  ...Object.fromEntries(
    `cat echo ls pwd true false : grep egrep fgrep wc head tail cut tr nl tac rev fold fmt paste join comm expand
    unexpand basename dirname realpath readlink stat du df whoami id uname which type cksum md5sum sha1sum sha256sum
    sha512sum seq sleep cmp od hexdump strings base64 jq exit return break continue cd pushd popd rm mkdir rmdir touch cp
    mv ln chmod`
      .split(/\s+/)
      .map((name) => [name, alwaysSafe]),
  ),
  git: gitDangers,
  find,
  sed,
  gsed: sed,
  awk,
  gawk: awk,
  mawk: awk,
  nawk: awk,
  date,
  ps,
  make,
  gmake: make,
  npm: packageManager,
  pnpm: packageManager,
  yarn: packageManager,
  sort: onlySafe({
    flags: 'bcCdfghiMmnRrsuVz',
    valued: 'ktS',
    long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort
    human-numeric-sort numeric-sort random-sort reverse sort version-sort check key merge stable field-separator unique
    zero-terminated parallel debug buffer-size batch-size random-source files0-from version help`.split(/\s+/),
  }),
  uniq: (argv) => [
    ...optionsBut(
      {
        flags: 'cdDiuz',
        valued: 'fsw',
        long: ['count', 'repeated', 'all-repeated', 'skip-fields', 'skip-chars', 'ignore-case', 'unique', 'group'],
      },
      argv,
    ),
    ...changed(
      argv,
      operandsOf(argv)
        .filter((index) => !/^-[fsw]$/.test(argv[index - 1]!))
        .slice(1),
    ),
  ],
  tee: (argv) =>
    changed(
      argv,
      operandsOf(argv).filter((index) => argv[index] !== '/dev/null'),
    ),
  dd: words(/^of=(?!\/dev\/null$)/, 'is written to'),
  test: words(/^-[vR]$/, 'evaluates a variable name'),
  '[': words(/^-[vR]$/, 'evaluates a variable name'),
  printf,
  jobs: words(/^-[a-z]*x/, 'runs a command'),
  wait: words(/^-/, 'sets a variable'),
  hostname: atMost(0, { letters: 'Fb', long: ['file', 'boot'] }),
  rg: noUnsafe({ letters: 'z', valued: 'ABCEMTdefgjmrt', long: ['pre', 'pre-glob', 'hostname-bin', 'search-zip'] }),
  fd: noUnsafe({ letters: 'xX', long: ['exec', 'exec-batch'] }),
  fdfind: noUnsafe({ letters: 'xX', long: ['exec', 'exec-batch'] }),
  tree: noUnsafe({ letters: 'oR', long: ['output'] }),
  shuf: noUnsafe({ letters: 'o', long: ['output'] }),
  iconv: noUnsafe({ letters: 'o', long: ['output'] }),
  file: noUnsafe({ letters: 'CzZ', long: ['compile', 'uncompress', 'uncompress-noreport'] }),
  diff: noUnsafe({ letters: 'l', long: ['paginate'] }),
  xxd: (argv) => [
    ...changed(
      argv,
      operandsOf(argv)
        .filter((index) => !/^-(?:[clsognR]|cols|len|seek|offset|name)$/.test(argv[index - 1]!))
        .slice(1),
    ),
    ...words(/^-[a-z]*r/, 'writes')(argv),
  ],
  yq: noUnsafe({ letters: 'is', long: ['inplace', 'in-place', 'split-exp', 'split-exp-file'] }),
  split: noUnsafe({ long: ['filter'] }),
  man: onlySafe({ flags: 'akfw', long: ['all', 'apropos', 'whatis', 'where', 'path', 'location'] }),
  tar: (argv) => [
    ...optionsBut({ flags: 'tvzjJ', valued: 'f', long: ['list', 'verbose', 'gzip', 'bzip2', 'xz', 'file'] }, argv),
    ...(/^[^-]/.test(argv[1] ?? '') && !/^[tvzjJf]+$/.test(argv[1]!) ? [{ index: 1, why: 'it writes files' }] : []),
  ],
  zip: noUnsafe({ letters: 'T', long: ['test', 'unzip-command'] }),
  rsync: noUnsafe({ letters: 'e', long: ['rsh', 'rsync-path', 'daemon', 'config'] }),
  curl: noUnsafe({
    letters: 'oOKDcJ',
    valued: 'ACEFHPQTUXYbdehmrtuwxyz',
    long: `output output-dir remote-name remote-name-all config dump-header cookie-jar trace trace-ascii stderr libcurl
    etag-save hsts alt-svc`.split(/\s+/),
  }),
  wget: noUnsafe({
    letters: 'Ooae',
    long: ['output-document', 'output-file', 'append-output', 'execute', 'use-askpass', 'config'],
  }),
  go: (argv) => [
    ...words(/^--?(?:exec|toolexec|vettool|o|C|overlay|modfile)(?:=|$)/, 'runs commands or writes files')(argv),
    ...words(/^(?:run|generate|tool|env)$/, 'may run commands')(argv.slice(0, 2)),
  ],
  cargo: noUnsafe({ long: ['config', 'fix'] }),
  cmake: words(/^-[EP]/, 'runs commands'),
  gcc: compiler,
  'g++': compiler,
  cc: compiler,
  'c++': compiler,
  clang: compiler,
  'clang++': compiler,
  apt: noUnsafe({ letters: 'oc', long: ['option', 'config-file'] }),
  'apt-get': noUnsafe({ letters: 'oc', long: ['option', 'config-file'] }),
  groff: noUnsafe({ letters: 'U' }),
  troff: noUnsafe({ letters: 'U' }),
  tcpdump: noUnsafe({ letters: 'zw' }),
  gh: words(/^(?:alias|extensions?|ext)$/, 'changes what gh runs'),
  xargs,
  env: alwaysSafe,
  docker: containers,
  podman: containers,
  kubectl: words(/^(?:exec|run|debug|attach|cp|edit)$/, 'runs commands elsewhere'),
  sysctl: words(/=|^-w/, 'changes a setting'),
}
