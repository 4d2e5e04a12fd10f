import { isHere } from './hook-project.fixture.ts'
import { scriptsOnCalls } from './public-calls.fixture.ts'
import { otherScripts } from './public-ends.fixture.ts'

/** What they need of the machine they run on. */
const programs = ['jq', 'python3', 'perl']

/** Those that this machine can run. */
export const publicScripts = [...scriptsOnCalls, ...otherScripts].filter(({ source, command }) =>
  programs.every((program) => isHere(program) || !new RegExp(`\\b${program}\\b`).test(`${source} ${command}`)),
)
