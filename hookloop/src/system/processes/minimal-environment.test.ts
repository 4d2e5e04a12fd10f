import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInjectionVariable, minimalEnvironment } from './minimal-environment.ts'

const ours = {
  PATH: '/usr/bin:.:node_modules/.bin::/srv/app/node_modules/.bin:/bin:/usr/bin',
  HOME: '/srv/a',
  LANG: 'C.UTF-8',
  LC_TIME: 'nb_NO.UTF-8',
  AGENT_API_KEY: 'CANARY-KEY',
  AWS_SECRET_ACCESS_KEY: 'CANARY-AWS',
  NODE_OPTIONS: '--require /evil.cjs',
  LD_PRELOAD: '/evil.so',
  BASH_ENV: '/evil.sh',
  ENV: '/evil.sh',
  'BASH_FUNC_ls%%': '() { evil; }',
  TERM: 'xterm-256color',
}

test('only paths, user and language are passed on, with a dumb terminal', () => {
  const { PATH: _path, HOME, LANG, LC_TIME, TERM, ...rest } = minimalEnvironment({}, { from: ours })
  assert.deepEqual(
    { HOME, LANG, LC_TIME, TERM },
    { HOME: '/srv/a', LANG: 'C.UTF-8', LC_TIME: 'nb_NO.UTF-8', TERM: 'dumb' },
  )
  assert.deepEqual(
    Object.keys(rest).filter((name) => name in ours),
    [],
  )
  assert.deepEqual([rest['EDITOR'], rest['PAGER'], rest['GIT_TERMINAL_PROMPT']], ['false', 'cat', '0'])
})

test('PATH has no relative folders, and folders inside the working directory come last', () => {
  assert.equal(
    minimalEnvironment({}, { from: ours, cwd: '/srv/app' })['PATH'],
    '/usr/bin:/bin:/srv/app/node_modules/.bin',
  )
})

test('declared variables override others, and undefined ones are left out', () => {
  const env = minimalEnvironment({ CI: '1', LANG: 'C', NONE: undefined }, { from: ours })
  assert.deepEqual([env['CI'], env['LANG'], 'NONE' in env], ['1', 'C', false])
})

test('variables that run code before the command are recognized', () => {
  const names = ['BASH_ENV', 'ENV', 'LD_PRELOAD', 'BASH_FUNC_ls%%', 'PS4', 'CI', 'PATH', 'MY_ENV']
  assert.deepEqual(names.filter(isInjectionVariable), ['BASH_ENV', 'ENV', 'LD_PRELOAD', 'BASH_FUNC_ls%%', 'PS4'])
})
