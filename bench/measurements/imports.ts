import { printedBy, round, spread, type Figures, type Measurement } from '../measurement.ts'

// The built package, which is what users import, in fresh processes, because a module is loaded once. Node's own start
// is not part of it.

const ENTRY_POINTS = [
  'hookloop',
  'hookloop/bash',
  'hookloop/files',
  'hookloop/hook-files',
  'hookloop/sessions',
  'hookloop/mcp',
  'hookloop/subagents',
  'hookloop/testing',
]
const EMPTY = 'data:text/javascript,'

export const measurement: Measurement = {
  about: 'importing each entry point in fresh processes',
  rows: {
    'importMs.hookloop': { label: 'ms to import hookloop', goal: 15 },
    'importMs.hookloop/bash': { label: 'ms to import hookloop/bash', goal: 35 },
    'importMs.hookloop/files': { label: 'ms to import hookloop/files', goal: 30 },
    'importMs.hookloop/hook-files': { label: 'ms to import hookloop/hook-files', goal: 40 },
    'importMs.*': { label: 'ms to import *' },
    emptyImportMs: { label: 'ms to import an empty module' },
  },
  async measure() {
    const times = new Map([...ENTRY_POINTS, EMPTY].map((name) => [name, [] as number[]]))
    for (let process = 0; process < 11; process++) for (const [name, taken] of times) taken.push(await importMs(name))
    const of = (kind: 'fast' | 'median'): Figures => ({
      importMs: Object.fromEntries(ENTRY_POINTS.map((name) => [name, round(spread(times.get(name)!)[kind])])),
      emptyImportMs: round(spread(times.get(EMPTY)!)[kind]),
    })
    return { ...of('fast'), median: of('median') }
  },
}

async function importMs(module: string): Promise<number> {
  const code = `const t = performance.now(); await import('${module}'); console.log(performance.now() - t)`
  return Number(await printedBy(process.execPath, ['--input-type=module', '-e', code]))
}
