// What the models say in the workshop: turn by turn, as they would if they were real.
import type { JsonObject } from 'hookloop'
import type { ScriptedTurn } from 'hookloop/testing'

const call = (name: string, args: JsonObject = {}): ScriptedTurn => ({ toolCalls: [{ name, args }] })
const todo = (...done: readonly string[]): ScriptedTurn => {
  const all = ['See the tests fail', 'Repair the program', 'See them pass']
  const todos = all.map((content, i) => ({ content, status: done[i] ?? 'pending' }))
  return call('todo_write', { todos })
}

export const repairer: readonly ScriptedTurn[] = [
  call('load_skill', { skill_name: 'repair' }),
  todo('in_progress'),
  call('bash', { command: 'node --test' }),
  call('spawn_subagent', { subagent: 'scout', prompt: 'Which line of src/median.js is wrong?' }),
  call('edit_file', { path: 'test/median.test.js', old_string: '2.5', new_string: '3' }),
  call('bash', { command: 'rm -r test' }),
  call('read_file', { path: 'src/median.js' }),
  call('edit_file', {
    path: 'src/median.js',
    old_string: 'numbers.sort()',
    new_string: 'numbers.toSorted((a, b) => a - b)',
  }),
  todo('completed', 'completed', 'in_progress'),
  call('bash', { command: 'node --test' }),
  call('store_metadata', { key: 'cause', value: 'sort() compares texts' }),
  todo('completed', 'completed', 'completed'),
  'It is repaired.',
  'It is repaired: sort() compares numbers as texts, so 10 came before 9. The tests pass, and they are unchanged.',
]

export const scout: readonly ScriptedTurn[] = [
  call('read_file', { path: 'src/median.js' }),
  'Line 2: sort() without a comparison sorts numbers as texts.',
]

export const critic: readonly ScriptedTurn[] = [
  {
    text: JSON.stringify({
      verdict: 'revise',
      summary: 'It does not say what was wrong.',
      weaknesses: ['no cause'],
      suggestions: ['Name the cause.'],
    }),
  },
  {
    text: JSON.stringify({
      verdict: 'approve',
      summary: 'Cause and proof are named.',
      weaknesses: [],
      suggestions: [],
    }),
  },
]
