import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'

/** What an installed program answers to an option. */
export type Answer = 'unknown' | 'needs a value' | 'takes no value' | 'accepted'

/** Runs a program with options and without input. */
export function answerTo(words: readonly string[], folder: string): Answer {
  const output = outputOf(words, folder)
  if (/takes no |doesn't allow an argument|does not take|unexpected value/i.test(output)) return 'takes no value'
  if (NEEDS.test(output)) return 'needs a value'
  return UNKNOWN.test(output) ? 'unknown' : 'accepted'
}

const NEEDS =
  /requires? (?:an? )?(?:argument|value)|needs? (?:an? )?(?:argument|value)|missing (?:argument|value)|expected (?:one|an) argument|no argument|must have an argument|takes (?:one|two) param/i
const UNKNOWN =
  /unrecognized|unknown (?:option|switch|flag|shorthand|predicate|argument)|(?:invalid|illegal|bad|no such|unexpected|unsupported) (?:option|argument)|not a valid option/i

/** The help of a program or a subcommand; empty if it is not installed. */
export function helpOf(words: readonly string[]): string {
  const request = words[0] === 'git' ? ['sh', '-c', GIT_HELP, 'sh', ...words] : [...words, '--help']
  const own = outputOf(request, tmpdir(), process.env['HOME'])
  const general = words.length > 1 ? generalHelp(words[0]!) : ''
  return own === general || /unknown command|not (?:found|installed)|No module named/.test(own)
    ? ''
    : `${own}\n${moreHelp(words[0]!)}`
}

const GIT_HELP = '"$@" -h; "$@" --git-completion-helper-all | tr " " "\\n"'

const more: { readonly [program: string]: readonly string[] } = {
  npm: [
    "npm config ls -l | sed -E 's/^([a-z-]+) = .*/--\\1 --no-\\1/'",
    `node -p 'Object.keys(require(process.argv[1]).shorthands).map((x) => "-" + x + " --" + x).join(" ")' "$(dirname "$(readlink -f "$(command -v npm)")")/../node_modules/@npmcli/config/lib/definitions"`,
  ],
  kubectl: ['kubectl options', 'kubectl get --help'],
  curl: ['curl --help all'],
  docker: [
    'docker ps --help',
    'docker logs --help',
    'docker images --help',
    'docker inspect --help',
    'docker stats --help',
    'docker network inspect --help',
  ],
  tsc: ['tsc --all'],
  cmake: ['cmake --build'],
}

const known = new Map<string, string>()
const generals = new Map<string, string>()

function generalHelp(program: string): string {
  const text = generals.get(program) ?? outputOf([program, '--help'], tmpdir(), process.env['HOME'])
  generals.set(program, text)
  return text
}

/** Help that is not part of the help of a subcommand. */
function moreHelp(program: string): string {
  const text =
    known.get(program) ?? (more[program] ?? []).map((line) => outputOf(['sh', '-c', line], tmpdir())).join('\n')
  known.set(program, text)
  return text
}

export function isInstalled(program: string): boolean {
  return spawnSync('/bin/sh', ['-c', 'command -v -- "$1" | grep -q /', 'sh', program]).status === 0
}

function outputOf([program = '', ...args]: readonly string[], cwd: string, home = cwd): string {
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    LC_ALL: 'C',
    PAGER: 'cat',
    TERM: 'dumb',
    GIT_TERMINAL_PROMPT: '0',
  }
  const { stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8', input: '', timeout: 10_000 })
  return `${stdout}\n${stderr}`
}
