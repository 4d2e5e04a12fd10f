// Prints the files that one `agent.run` with one tool and one guard visits, in order, each with the functions that were
// entered. A file counts as visited when one of its functions is called during the run; importing modules and creating
// the agent do not count.
import { readFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { parse, type AnyNode, type Function as FunctionNode } from 'acorn'

const USAGE = `Usage: npm run walk [-- --json]

Runs an agent with one tool and one guard, and lists the files of hookloop/src that the run visits.

  --json   print one object: { files: [{ file, functions }], changes }
  --help   print this text`

const { values } = parseArgs({ options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
if (values.help === true) {
  console.log(USAGE)
  process.exit(0)
}

type Visit = { readonly file: string; readonly functions: string[] }

const source = join(import.meta.dirname, '../hookloop/src')
const sourceUrl = `${pathToFileURL(source).href}/`
const visits = new Map<string, Visit>()
let [isRecording, last, changes] = [false, '', 0]

/** Called at the start of every function of the library. */
function enter(file: string, name: string): void {
  if (!isRecording) return
  const visit = visits.get(file) ?? { file, functions: [] }
  visits.set(file, visit)
  if (name !== '' && !visit.functions.includes(name)) visit.functions.push(name)
  if (file !== last && last !== '') changes++
  last = file
}
Object.assign(globalThis, { __enter: enter })

registerHooks({
  load(url, context, nextLoad) {
    if (!url.startsWith(sourceUrl) || !url.endsWith('.ts')) return nextLoad(url, context)
    const path = fileURLToPath(url)
    const code = stripTypeScriptTypes(readFileSync(path, 'utf8'))
    return { format: 'module', source: instrument(code, relative(source, path)), shortCircuit: true }
  },
})

await runPlainAgent()
const files = [...visits.values()]
if (values.json === true) {
  console.log(JSON.stringify({ files, changes }))
} else {
  for (const [i, { file, functions }] of files.entries()) {
    console.log(`${String(i + 1).padStart(3)} ${file.padEnd(32)} ${functions.join(' ')}`)
  }
  console.log(`\n${files.length} files, ${changes} changes of file`)
}

async function runPlainAgent(): Promise<void> {
  const { createAgent, guard, tool } = await import('hookloop')
  const { scriptedModel } = await import('hookloop/testing')
  const z = await import('zod')
  const add = tool({
    name: 'add',
    description: 'Adds two numbers.',
    input: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => a + b,
  })
  const onlySmall = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.a > 100 ? ctx.block('Too large.') : ctx), {
    name: 'only-small',
    tool: add,
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'add', args: { a: 1, b: 2 } }] }, 'It is 3.'])
  const agent = createAgent({ model, use: [add, onlySmall] })
  isRecording = true
  const run = await agent.run('What is 1 + 2?')
  isRecording = false
  if (run.status !== 'completed') throw new Error(`The run did not complete: ${run.status}`)
}

/** Adds a call of `enter` to every function of a module. */
function instrument(code: string, file: string): string {
  const inserts: { readonly at: number; readonly text: string }[] = []
  const visit = (node: AnyNode, name: string): void => {
    if (isFunction(node)) {
      const call = `__enter(${JSON.stringify(file)},${JSON.stringify(node.id?.name ?? name)})`
      const { body } = node
      if (body.type === 'BlockStatement') inserts.push({ at: body.start + 1, text: `${call};` })
      else inserts.push({ at: body.start, text: `(${call},` }, { at: body.end, text: ')' })
    }
    for (const child of childrenOf(node)) visit(child, nameFrom(node))
  }
  visit(parse(code, { sourceType: 'module', ecmaVersion: 'latest' }), '')
  return inserts
    .toSorted((a, b) => b.at - a.at)
    .reduce((text, insert) => text.slice(0, insert.at) + insert.text + text.slice(insert.at), code)
}

function isFunction(node: AnyNode): node is FunctionNode & AnyNode {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type)
}

/** The name that a declaration or property gives to the function in it. */
function nameFrom(node: AnyNode): string {
  const named = node.type === 'VariableDeclarator' ? node.id : 'key' in node ? node.key : undefined
  return named?.type === 'Identifier' || named?.type === 'PrivateIdentifier' ? named.name : ''
}

function childrenOf(node: AnyNode): readonly AnyNode[] {
  const values: readonly unknown[] = Object.values(node).flat()
  return values.filter((value): value is AnyNode => typeof value === 'object' && value !== null && 'type' in value)
}
