import { cpSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { buildPackage, type BuiltPackage } from './built-package.ts'
import { bunProgram } from './bun-program.ts'
import { testScenarios } from './run-scenarios.ts'

// The built package on each runtime. The runtimes are packages of scripts/runtimes/package.json.

const packages = join(import.meta.dirname, 'node_modules')
const [system, cpu] = [process.platform, process.arch]

type Runtime = { readonly name: string; readonly program: string; readonly args: readonly string[] }

const runtimes: readonly Runtime[] = [
  { name: `on Node ${process.versions.node}`, program: process.execPath, args: [] },
  { name: 'on Node 22.18', program: join(packages, `node-${system}-${cpu}/bin/node`), args: [] },
  { name: 'on Bun', program: bunProgram(), args: ['run'] },
  { name: 'on Deno', program: denoProgram(), args: ['run', '--allow-all', '--node-modules-dir=manual'] },
]

let built: BuiltPackage
before(() => {
  built = buildPackage('runtimes')
  for (const file of ['main.ts', 'scenarios.ts', 'scenario-work.ts'])
    cpSync(join(import.meta.dirname, file), join(built.folder, file))
})
after(() => built.remove())

for (const { name, program, args } of runtimes) {
  testScenarios(name, async () => {
    if (existsSync(program)) return [program, ...args, join(built.folder, 'main.ts')]
    console.log(`NOT TESTED ${name}: there is no package of it for ${system} ${cpu}, or npm test has not installed it.`)
    return undefined
  })
}

function denoProgram(): string {
  return join(packages, `@deno/${system}-${cpu}${system === 'linux' ? '-glibc' : ''}/deno`)
}
