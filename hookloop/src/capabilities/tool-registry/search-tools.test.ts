import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool, type Tool } from '../../core/agent/tool.ts'
import { manyTools } from './many-tools.fixture.ts'
import { indexTools } from './search-tools.ts'

const made = (name: string, description: string, ...args: readonly string[]): Tool => {
  const properties = Object.fromEntries(args.map((each) => [each, { type: 'string' }]))
  return tool({ name, description, input: { type: 'object', properties }, execute: () => 'done' })
}

const some = [
  made('send_message', 'Posts a text into a channel.', 'channel', 'text'),
  made('createIssue', 'Opens a ticket about a bug.', 'title', 'body'),
  made('get_weather', 'Tells how warm it is in a city.', 'city'),
  made('convert_currency', 'Converts an amount of money.', 'amount', 'from_currency', 'to_currency'),
  made('translate_text', 'Translates a text into another language.', 'text', 'target_language'),
  made('list_calendars', 'Lists calendars that can be read.'),
  made('run_query', 'Runs SQL against the database, read only.', 'sql', 'timezone'),
]
const search = indexTools(some)
const best = (query: string): string | undefined => search(query, 1)[0]?.name

for (const [query, name] of [
  ['send a message', 'send_message'],
  ['sending messages to a user', 'send_message'],
  ['create issue', 'createIssue'],
  ['creating issues', 'createIssue'],
  ['ticket', 'createIssue'],
  ['weather in Oslo', 'get_weather'],
  ['currencies', 'convert_currency'],
  ['timezone', 'run_query'],
  ['calend', 'list_calendars'],
  ['language', 'translate_text'],
  ['SQL', 'run_query'],
  ['get_weather', 'get_weather'],
  ['GetWeather', 'get_weather'],
] as const) {
  test(`"${query}" finds ${name}`, () => assert.equal(best(query), name))
}

test('the name of a tool finds that tool', () => {
  const long = 'Does this and that, and more of that, and something else that takes many words to say.'
  const found = indexTools([made('mail_mail', 'Mails mail.'), made('mail', long), made('mailer', 'Mails mail.')])
  assert.equal(found('mail', 1)[0]?.name, 'mail')
})

test('words of other scripts are found', () => {
  const found = indexTools([made('wetter', 'Zeigt, wie warm es in Zürich ist.'), made('pogoda', 'Показывает погоду.')])
  assert.deepEqual([found('zürich', 1)[0]?.name, found('погоду', 1)[0]?.name], ['wetter', 'pogoda'])
})

test('a query that matches nothing finds nothing', () => {
  for (const query of ['', ' ', '???', 'the of a', 'xyzzy', '__proto__', 'constructor', '\ud800', '💥']) {
    assert.deepEqual(search(query, 9), [], query)
  }
  assert.deepEqual(indexTools([])('anything', 9), [])
})

test('a hostile query is not slow', () => {
  for (const query of ['a'.repeat(1_000_000), 'ab '.repeat(400_000), 'aA'.repeat(400_000), 's'.repeat(1_000_000)]) {
    assert.ok(search(query, 100).length <= 100)
  }
})

test('one of five hundred tools is found by what it does', () => {
  const found = indexTools(manyTools())
  for (const [query, name] of [
    ['create an issue on github', 'github_create_issue'],
    ['remove a comment in jira', 'jira_delete_comment'],
    ['post slack messages', 'slack_create_message'],
    ['stripe payments', 'stripe_create_payment'],
    ['postgres tables', 'postgres_create_table'],
  ] as const) {
    const names = found(query, 4).map((each) => each.name)
    assert.ok(names.includes(name), `${query}: ${names.join(' ')}`)
  }
})
