import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

test('without the SDK the error says how to install it', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const main = join(folder, 'main.ts')
  writeFileSync(
    main,
    `import { registerHooks } from 'node:module'
     registerHooks({
       resolve(name, context, next) {
         if (!name.startsWith('@modelcontextprotocol/')) return next(name, context)
         throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
       },
     })
     const { mcp } = await import(${JSON.stringify(join(import.meta.dirname, 'mcp.ts'))})
     await mcp({ servers: {} }).catch(({ code, message }) => console.log(code, message))`,
  )
  const { stdout } = spawnSync(process.execPath, ['--conditions=hookloop-source', '--no-warnings', main], {
    encoding: 'utf8',
  })
  assert.equal(
    stdout,
    'AGENT_INVALID_OPTION mcp: it needs the package @modelcontextprotocol/client. ' +
      'Install it with: npm install @modelcontextprotocol/client\n',
  )
})
