import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { configFolder, homeFolder } from './user-folders.ts'

test('an empty or relative XDG_CONFIG_HOME counts as unset', () => {
  assert.equal(configFolder({ XDG_CONFIG_HOME: '/settings' }), '/settings/hookloop')
  const usual = join(homedir(), '.config', 'hookloop')
  for (const env of [{}, { XDG_CONFIG_HOME: '' }, { XDG_CONFIG_HOME: '.' }, { XDG_CONFIG_HOME: 'settings' }]) {
    assert.equal(configFolder(env), usual)
  }
})

test('with an empty HOME, the home folder is that of the account, and not the current folder', () => {
  const file = join(import.meta.dirname, 'user-folders.ts')
  const code = `import('${file}').then(({ homeFolder }) => process.stdout.write(homeFolder()))`
  const printed = execFileSync(process.execPath, ['-e', code], { env: { HOME: '' }, encoding: 'utf8' })
  assert.match(printed, /^\/.+/)
  assert.equal(homeFolder(), homedir())
})
