import { isHere } from './hook-project.fixture.ts'
import { scriptsOnCalls } from './public-calls.fixture.ts'
import { otherScripts } from './public-ends.fixture.ts'

/** The programs that the scripts need. */
const programs = ['jq', 'python3', 'perl']

/** The scripts that can run here. */
export const publicScripts = [...scriptsOnCalls, ...otherScripts].filter(({ source, command }) =>
  programs.every((program) => isHere(program) || !new RegExp(`\\b${program}\\b`).test(`${source} ${command}`)),
)
