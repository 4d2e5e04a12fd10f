// Prints what an installed program says about its options, in the notation of the command policy:
//   node scripts/command-grammar.ts sort
//   node scripts/command-grammar.ts git log
// Then delete every option that runs a program, writes a file, loads code or settings, or chooses a folder or server, add the operands,
// and put the line into a file of hookloop/src/capabilities/bash/policy/grammars.
import { helpOf } from '../hookloop/src/capabilities/bash/policy/program-help.fixture.ts'

const words = process.argv.slice(2)
if (words.length === 0) throw new Error('Usage: node scripts/command-grammar.ts <program> [subcommand]')

const found = new Map<string, string>()
for (const line of helpOf(words).split('\n')) {
  const head = /^\s{0,8}(-.*?)(?:\s{2,}|\t|$)/.exec(line)?.[1] ?? ''
  const isOptional = head.includes('[')
  const hasValue = /[= ][A-Z<]|=$/.test(head)
  const sign = isOptional ? '?' : hasValue ? '=' : ''
  for (const [name] of head.matchAll(/(?<![\w=<[-])--?[A-Za-z0-9][\w-]*/g)) found.set(name, sign)
}

const grouped = Map.groupBy(found, ([name, sign]) =>
  name.startsWith('--') ? `--${sign}` : name.length === 2 ? `-${sign}` : '',
)
const tokens = [...grouped].map(([kind, options]) => {
  const names = options.map(([name]) => name.replace(/^--?/, ''))
  if (kind === '') return names.map((name) => `-${name}`).join(' ')
  const sign = kind.replaceAll('-', '')
  return kind.startsWith('--') ? `--${names.join(',')}${sign}` : `-${names.join('')}${sign}`
})
console.log(`${words.join(' ')}: ${tokens.join(' ')} any*`)
