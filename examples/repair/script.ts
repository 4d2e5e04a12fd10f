import type { ModelRequest } from 'hookloop'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from 'hookloop/testing'

type Turn = Exclude<ScriptedTurn, string>

/** The model of the demo: it says what a model might say. What its tools answer, and what hooks do to it, is real. */
export function repairModel(options: { readonly delayMs: number }): ScriptedModel {
  return scriptedModel(
    turns.map((turn) => (request: ModelRequest) => ({ ...turn, ...options, usage: estimate(request, turn) })),
    { modelId: 'repair' },
  )
}

const turns: readonly Turn[] = [
  {
    text: 'I will look at what is there, and at what the tests say.',
    toolCalls: [{ name: 'list_files' }, { name: 'run_tests' }],
  },
  {
    text: 'Three tests fail, all about totals. I read the code, its tests and the log that lies beside them.',
    toolCalls: [
      { name: 'read_file', args: { path: 'src/invoice.js' } },
      { name: 'read_file', args: { path: 'test/invoice.test.js' } },
      { name: 'read_file', args: { path: 'debug.log' } },
    ],
  },
  {
    text: 'The program says 1250 where the test wants 2150. The quickest way to green is to expect 1250.',
    toolCalls: [{ name: 'edit_file', args: { path: 'test/invoice.test.js', find: '2150', replace: '1250' } }],
  },
  {
    text: 'Fair enough: the program is wrong. Its loop begins at 1, so the first line is never added.',
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
    text: 'Better. The discount is in percent but used as a fraction, and never rounded. The log is of no more use.',
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
  { text: 'Both faults are repaired: every line is added, and the discount is taken off in percent.' },
  {
    text: 'Right, I have not seen them pass yet.',
    toolCalls: [{ name: 'run_tests' }, { name: 'run', args: { command: 'node', args: ['main.js'] } }],
  },
  { text: 'All four tests pass now. The total skipped the first line and took percents for fractions.' },
]

/** About four letters make a token. */
function estimate({ system, messages, tools }: ModelRequest, { text, toolCalls }: Turn): NonNullable<Turn['usage']> {
  const tokens = (value: unknown): number => Math.ceil(JSON.stringify(value).length / 4)
  return { inputTokens: tokens([system, messages, tools]), outputTokens: tokens([text, toolCalls]) }
}
