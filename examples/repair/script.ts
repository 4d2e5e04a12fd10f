import type { ModelRequest } from 'hookloop'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from 'hookloop/testing'

type Turn = Exclude<ScriptedTurn, string>

/** The model of the demo follows a script. Its tool calls, their results and what hooks do to them are real. */
export function repairModel(options: { readonly delayMs: number }): ScriptedModel {
  return scriptedModel(
    turns.map((turn) => (request: ModelRequest) => ({ ...turn, ...options, usage: estimate(request, turn) })),
    { modelId: 'repair' },
  )
}

const turns: readonly Turn[] = [
  {
    text: 'I will list the files and run the tests.',
    toolCalls: [{ name: 'list_files' }, { name: 'run_tests' }],
  },
  {
    text: 'Three tests fail, all about totals. I will read the code, the tests and the log.',
    toolCalls: [
      { name: 'read_file', args: { path: 'src/invoice.js' } },
      { name: 'read_file', args: { path: 'test/invoice.test.js' } },
      { name: 'read_file', args: { path: 'debug.log' } },
    ],
  },
  {
    text: 'The program returns 1250, the test expects 2150. The quickest fix is to change the test.',
    toolCalls: [{ name: 'edit_file', args: { path: 'test/invoice.test.js', find: '2150', replace: '1250' } }],
  },
  {
    text: 'Understood, the program is wrong. Its loop starts at 1, so the first line is skipped.',
    toolCalls: [
      {
        name: 'edit_file',
        args: {
          path: 'src/invoice.js',
          find: 'let i = 1;',
          replace: 'let i = 0;',
        },
      },
      { name: 'run_tests' },
    ],
  },
  {
    text: 'Better. The discount is in percent but used as a fraction, and not rounded. The log is not needed any more.',
    toolCalls: [
      {
        name: 'edit_file',
        args: {
          path: 'src/invoice.js',
          find: 'return sum - sum * discount',
          replace: 'return Math.round(sum - (sum * discount) / 100)',
        },
      },
      { name: 'delete_file', args: { path: 'debug.log' } },
    ],
  },
  { text: 'Both bugs are fixed: every line is added, and the discount is in percent.' },
  {
    text: 'Right, I have not run the tests since. I will run them and the program.',
    toolCalls: [{ name: 'run_tests' }, { name: 'run', args: { command: 'node', args: ['main.js'] } }],
  },
  { text: 'All four tests pass. The total skipped the first line and used percent as a fraction.' },
]

/** About four characters per token. */
function estimate({ system, messages, tools }: ModelRequest, { text, toolCalls }: Turn): NonNullable<Turn['usage']> {
  const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4)
  return { inputTokens: tokens([system, messages, tools]), outputTokens: tokens([text, toolCalls]) }
}
