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
import { isHarmlessSed } from './sed-script.ts'

/**
 * The words of a command that make a harmless program run something or write, or that are not known not to. A rule
 * covers them only by naming them.
 */
export function dangersIn(argv: readonly string[]): readonly Danger[] {
  const name = argv[0]!.split('/').at(-1)!
  const judge = Object.hasOwn(programs, name) ? programs[name] : undefined
  if (judge !== undefined) return judge(argv)
  return INTERPRETER.test(name) ? interpreter(argv) : optionsExactly(everywhere, argv)
}

type Judge = (argv: readonly string[]) => readonly Danger[]

/** Programs that run what they are given: which file or text that is must stand in the rule. */
const INTERPRETER =
  /^(?:(?:python|pypy|ruby|perl|lua|php|node|deno|bun|ts-node|tsx|tclsh|wish|expect|guile|racket|ghci|irb|octave|java|groovy|scala|julia|R|Rscript|osascript|m4|gdb|lldb|vim?|nvim|view|ex|ed|emacs|nano|less|more|most|sqlite3|psql|mysql|ldd|at|batch|crontab|socat|nc|ncat|netcat|telnet|ftp|sftp|scp|screen|tmux|systemd-run|openssl|ssh|su|sudo|doas|runuser|chroot|unshare|nsenter|script|parallel|nix-shell)[\d.]*|(?:ba|da|a|z|k|mk|rba|ya|fi|c|tc)?sh|pwsh|powershell)$/

const interpreter: Judge = (argv) => {
  if (argv.length === 1) return [{ index: 1, why: 'it runs what it reads' }]
  if (argv.length === 2 && /^(?:--version|--help|-V|-v|-h)$/.test(argv[1]!)) return []
  const first = argv.findIndex((word, index) => index > 0 && (word === '-' || !/^[-+]/.test(word)))
  const options = [...argv.keys()].slice(1, first === -1 ? argv.length : first)
  return [...new Set([1, ...options])].map((index) => ({ index, why: `${shown(argv[index]!)} is run` }))
}

/** Long options that run something or change files, whatever the program is. */
const everywhere: ReadonlySet<string> = new Set(
  `exec exec-batch eval pre hostname-bin pager to-command checkpoint-action use-compress-program compress-program rsh
  rsh-command rsync-path upload-pack receive-pack ext-diff extcmd script-shell init-command init-file rcfile editor
  browser in-place inplace fix write`.split(/\s+/),
)

function optionsExactly(names: ReadonlySet<string>, argv: readonly string[]): readonly Danger[] {
  return argv.flatMap((word, index) => {
    const isDanger = index > 0 && word.startsWith('--') && names.has(word.slice(2).split('=')[0]!)
    return isDanger ? [{ index, why: `${shown(word)} runs something or writes` }] : []
  })
}

const harmless: Judge = () => []
const but =
  (safe: SafeOptions): Judge =>
  (argv) =>
    optionsBut(safe, argv)
const unless =
  (unsafe: UnsafeOptions): Judge =>
  (argv) =>
    optionsOf(unsafe, argv)

/** Operands beyond so many: they would be written to. */
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
  /^-(?:H|L|P|a|amin|and|anewer|atime|cmin|cnewer|ctime|daystart|depth|empty|executable|false|follow|fstype|gid|group|i?lname|i?name|i?path|i?regex|i?wholename|inum|links|ls|maxdepth|mindepth|mmin|mount|mtime|newer(?:[aBcm][aBcmt])?|nogroup|noleaf|not|nouser|o|or|perm|print|print0|printf|prune|quit|readable|regextype|samefile|size|true|type|uid|user|writable|xdev|xtype|\d.*)$/

const find: Judge = (argv) =>
  argv.flatMap((word, index) => {
    const isKnown = index === 0 || !word.startsWith('-') || FIND_TESTS.test(word)
    return isKnown ? [] : [{ index, why: `${shown(word)} is not known to be harmless` }]
  })

const SED: SafeOptions = {
  flags: 'nErsuz',
  valued: 'e',
  long: `quiet silent regexp-extended expression separate unbuffered null-data posix debug sandbox version help`.split(
    /\s+/,
  ),
}

/** The script is the value of -e, or the first word that is no option. */
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
    ...harmful.map(({ index }) => ({ index, why: 'the script may run something or write' })),
  ]
}

/** Within an awk program: running, writing, reading from elsewhere, calling by name. */
const AWK_HARMFUL = /system|getline|@|[|>]/

const awk: Judge = (argv) => {
  let program = 1
  while (/^-[Fv]/.test(argv[program] ?? '')) program += argv[program]!.length === 2 ? 2 : 1
  if (argv[program] === '--') program += 1
  const isHarmful = AWK_HARMFUL.test((argv[program] ?? '').replace(/\|\||>=/g, ''))
  return [
    ...optionsBut({ valued: 'Fv', long: ['version', 'help'] }, argv),
    ...(isHarmful ? [{ index: program, why: 'the program may run something or write' }] : []),
  ]
}

const date: Judge = (argv) => [
  ...optionsOf({ letters: 'sf', long: ['set', 'file'] }, argv),
  ...operandsOf(argv)
    .filter((index) => !argv[index]!.startsWith('+') && !/^-[drI]$/.test(argv[index - 1]!))
    .filter((index) => !/^--(?:date|reference)$/.test(argv[index - 1]!))
    .map((index) => ({ index, why: `${shown(argv[index]!)} would set the clock` })),
]

/** Letters without a dash are options too, and e shows the environment of every process. */
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

const containers = words(/^(?:run|exec|compose|build|buildx|cp|start|create)$/, 'runs something elsewhere')

const NPM_SUBCOMMANDS = /^(?:exec|x|explore|edit|config|set|init|create|link|install-script|hook|publish|token|login)$/

const packageManager: Judge = (argv) => [
  ...(NPM_SUBCOMMANDS.test(argv[1] ?? '') ? [{ index: 1, why: `${argv[0]!} ${argv[1]!} runs or changes more` }] : []),
  ...optionsOf(
    { long: ['script-shell', 'node-options', 'prefix', 'call', 'userconfig', 'globalconfig', 'shell'] },
    argv,
  ),
  ...(argv[1]?.startsWith('-') === true && !/^(?:--version|-v|--help|-h)$/.test(argv[1])
    ? [{ index: 1, why: `${shown(argv[1])} comes before the subcommand` }]
    : []),
]

/** `printf -v`, and the conversion that stores how much was written. */
const SETS_VARIABLE = /^-(?!-$)|%[-+ #0-9.*']*[hlLjzt]*n/

const programs: { readonly [name: string]: Judge } = {
  ...Object.fromEntries(
    `cat echo ls pwd true false : grep egrep fgrep wc head tail cut tr nl tac rev fold fmt paste join comm expand
    unexpand basename dirname realpath readlink stat du df whoami id uname which type cksum md5sum sha1sum sha256sum
    sha512sum seq sleep cmp od hexdump strings base64 jq exit return break continue cd pushd popd rm mkdir rmdir touch cp
    mv ln chmod`
      .split(/\s+/)
      .map((name) => [name, harmless]),
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
  sort: but({
    flags: 'bcCdfghiMmnRrsuVz',
    valued: 'ktS',
    long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort
    human-numeric-sort numeric-sort random-sort reverse sort version-sort check key merge stable field-separator unique
    zero-terminated parallel debug buffer-size batch-size version help`.split(/\s+/),
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
  printf: (argv) => words(SETS_VARIABLE, 'sets a variable')(argv.slice(0, argv[1] === '--' ? 3 : 2)),
  jobs: words(/^-x/, 'runs a command'),
  wait: words(/^-/, 'sets a variable'),
  hostname: atMost(0, { letters: 'Fb', long: ['file', 'boot'] }),
  rg: unless({ letters: 'z', long: ['pre', 'pre-glob', 'hostname-bin', 'search-zip'] }),
  fd: unless({ letters: 'xX', long: ['exec', 'exec-batch'] }),
  fdfind: unless({ letters: 'xX', long: ['exec', 'exec-batch'] }),
  tree: unless({ letters: 'oR', long: ['output'] }),
  shuf: unless({ letters: 'o', long: ['output'] }),
  iconv: unless({ letters: 'o', long: ['output'] }),
  file: unless({ letters: 'CzZ', long: ['compile', 'uncompress', 'uncompress-noreport'] }),
  diff: unless({ letters: 'l', long: ['paginate'] }),
  xxd: (argv) => [...atMost(1)(argv), ...words(/^-[a-z]*r/, 'writes')(argv)],
  yq: unless({ letters: 'is', long: ['inplace', 'in-place', 'split-exp', 'split-exp-file'] }),
  split: unless({ long: ['filter'] }),
  man: but({ flags: 'akfw', long: ['all', 'apropos', 'whatis', 'where', 'path', 'location'] }),
  tar: (argv) => [
    ...optionsBut({ flags: 'tvzjJ', valued: 'f', long: ['list', 'verbose', 'gzip', 'bzip2', 'xz', 'file'] }, argv),
    ...(/^[^-]/.test(argv[1] ?? '') && !/^[tvzjJf]+$/.test(argv[1]!) ? [{ index: 1, why: 'it writes files' }] : []),
  ],
  zip: unless({ letters: 'T', long: ['test', 'unzip-command'] }),
  rsync: unless({ letters: 'e', long: ['rsh', 'rsync-path', 'daemon', 'config'] }),
  curl: unless({
    letters: 'oOKDcJ',
    long: `output output-dir remote-name remote-name-all config dump-header cookie-jar trace trace-ascii stderr libcurl
    etag-save hsts alt-svc`.split(/\s+/),
  }),
  wget: unless({
    letters: 'Ooae',
    long: ['output-document', 'output-file', 'append-output', 'execute', 'use-askpass', 'config'],
  }),
  go: (argv) => [
    ...words(/^--?(?:exec|toolexec|vettool|o|C|overlay|modfile)(?:=|$)/, 'runs something or writes')(argv),
    ...words(/^(?:run|generate|tool|env)$/, 'may run something')(argv.slice(0, 2)),
  ],
  cargo: unless({ long: ['config', 'fix'] }),
  xargs: harmless, // what it runs is looked at elsewhere
  env: harmless,
  docker: containers,
  podman: containers,
  kubectl: words(/^(?:exec|run|debug|attach|cp|edit)$/, 'runs something elsewhere'),
  sysctl: words(/=|^-w/, 'changes a setting'),
}
