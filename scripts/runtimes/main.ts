// Runs the scenarios and prints a line of JSON for each. How this program is started again is in HOOKLOOP_RESTART.
import { inFolder, roles } from './scenario-work.ts'
import { scenarios } from './scenarios.ts'

const [role, folder] = process.argv.slice(2)
const restart = JSON.parse(process.env['HOOKLOOP_RESTART'] ?? '[]') as readonly string[]

async function runAll(): Promise<void> {
  for (const [title, scenario] of Object.entries(scenarios)) {
    if (role !== undefined && !title.includes(role)) continue
    try {
      await inFolder((empty) => scenario({ folder: empty, restart }))
      console.log(JSON.stringify({ title }))
    } catch (error) {
      console.log(JSON.stringify({ title, problem: (error as Error).stack ?? String(error) }))
    }
  }
  process.exit(0) // what a failed scenario has left open must not keep the process
}

void (role !== undefined && role in roles ? roles[role]!(folder ?? '') : runAll())
