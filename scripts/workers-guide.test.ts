import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, suite, test } from 'node:test'
import { startPostgres, type PostgresServer } from '../hookloop/src/sessions/stores/postgres.fixture.ts'
import { readGuide } from './guide.fixture.ts'
import { buildPackage, type BuiltPackage } from './runtimes/built-package.ts'

// The guide is followed word by word, with the built package. Packages and database are those of the repository.

const COMMAND = 'node_modules/hookloop/bin/hookloop.mjs'

const { files, commands } = readGuide('site/guides/workers.md')

test('the guide to workers prints the files of the example', () => {
  assert.deepEqual(Object.keys(files), ['agent.ts', 'worker.ts', 'client.ts'])
  for (const [name, code] of Object.entries(files))
    assert.equal(code, readFileSync(join('examples/workers', name), 'utf8'))
})

suite('the guide to workers', () => {
  let built: BuiltPackage
  let database: PostgresServer
  const started = new Set<ChildProcess>()
  before(async () => {
    built = buildPackage('workers-guide')
    database = await startPostgres()
    for (const [name, code] of Object.entries(files)) writeFileSync(join(built.folder, name), code)
    writeFileSync(join(built.folder, 'package.json'), JSON.stringify({ type: 'module' }))
  })
  after(async () => {
    for (const child of started) child.kill('SIGKILL')
    await database.stop()
    built.remove()
  })

  /** Runs a command of the guide. */
  function start(command: string): { readonly child: ChildProcess; readonly lines: AsyncIterator<string> } {
    assert.ok(commands.includes(command), command)
    const isCommand = command.startsWith('npx hookloop ')
    const [, ...args] = command.replace('npx hookloop', `node ${COMMAND}`).split(' ')
    assert.ok(isCommand || command.startsWith('node '))
    const child = spawn(process.execPath, args, {
      cwd: built.folder,
      env: { ...process.env, DATABASE_URL: database.connectionString },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    started.add(child)
    return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() }
  }

  function parts(): readonly { readonly what: string; readonly pid: number }[] {
    const file = join(built.folder, 'built.txt')
    if (!existsSync(file)) return []
    return [...readFileSync(file, 'utf8').matchAll(/^(.*) \(process (\d+)\)$/gm)].map(([, what, pid]) => ({
      what: what!,
      pid: Number(pid),
    }))
  }

  test('a worker is killed, all houses are built without building a part twice, and workers end when they are asked to', async () => {
    const workers = [1, 2, 3].map(() => start('node worker.ts'))
    for (const { lines, child } of workers) assert.equal((await lines.next()).value, `process ${child.pid} is ready`)
    const client = start('node client.ts oak elm ash fir yew box')
    const ended = once(client.child, 'exit')
    while (parts().length < 4) await new Promise((resolve) => setTimeout(resolve, 10))
    const victim = workers.find(({ child }) => child.pid === parts()[0]!.pid)!.child
    victim.kill('SIGKILL')
    const said = await readAll(client.lines)
    assert.deepEqual(await ended, [0, null])
    const houses = ['ash', 'box', 'elm', 'fir', 'oak', 'yew']
    assert.deepEqual(
      said.toSorted(),
      houses.map((house) => `${house}: completed. The house is built.`),
    )
    const whats = parts().map(({ what }) => what)
    assert.equal(new Set(whats).size, whats.length, 'no part is built twice')
    assert.ok(new Set(parts().map(({ pid }) => pid)).size > 1, 'several workers took part')

    const again = start('node client.ts oak elm ash fir yew box')
    assert.deepEqual((await readAll(again.lines)).toSorted(), said.toSorted())
    assert.equal(parts().length, whats.length)

    for (const { child } of workers.filter((each) => each.child !== victim)) {
      child.kill('SIGINT')
      assert.deepEqual(await once(child, 'exit'), [0, null])
    }
    const { child, lines } = start('npx hookloop worker agent.ts --postgres')
    const { event, agents } = JSON.parse((await lines.next()).value as string) as { event: string; agents: string[] }
    assert.deepEqual([event, agents], ['ready', ['agent']])
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })
})

async function readAll(lines: AsyncIterator<string>): Promise<readonly string[]> {
  const all: string[] = []
  for (let line = await lines.next(); line.done !== true; line = await lines.next()) all.push(line.value)
  return all
}
