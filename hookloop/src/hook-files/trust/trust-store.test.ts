import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { fingerprint, hashFiles, type Fingerprint } from './fingerprint.ts'
import { defaultTrustFile, trustedByHash, TrustStore } from './trust-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-trust-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** A project with one file, and a list outside of it. */
function scene({ name = '.claude/settings.json', text = '{}' } = {}) {
  const dir = mkdtempSync(join(folder, 'project-'))
  const path = join(dir, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  const trust = new TrustStore(join(mkdtempSync(join(folder, 'home-')), 'deep/trust.json'))
  return { dir, path, trust, print: (): Fingerprint => fingerprint(path)! }
}

suite('the list of trusted files', () => {
  test('has the status of a file by its content', () => {
    const { path, trust, print } = scene()
    const statuses = [trust.statusOf(print())]
    trust.trust([print()])
    statuses.push(trust.statusOf(print()))
    writeFileSync(path, '{ }')
    statuses.push(trust.statusOf(print()))
    assert.deepEqual(statuses, ['untrusted', 'trusted', 'changed'])
  })

  test('never has a file that cannot be read', () => {
    const { path, trust } = scene()
    const unreadable = { path, hash: '' }
    trust.trust([unreadable])
    assert.deepEqual(
      [trust.statusOf(unreadable), TrustStore.of([unreadable]).statusOf(unreadable)],
      ['untrusted', 'changed'],
    )
  })

  test('forgets the files of a folder, says how many they were, and keeps those of others', () => {
    const [one, other] = [scene(), scene()]
    one.trust.trust([one.print(), other.print()])
    assert.deepEqual([one.trust.forget(one.dir), one.trust.forget(one.dir)], [1, 0])
    assert.deepEqual([one.trust.statusOf(one.print()), one.trust.statusOf(other.print())], ['untrusted', 'trusted'])
  })

  test('lists files with hooks that are gone, and files with hooks that have changed', () => {
    for (const name of [
      '.claude/settings.json',
      '.claude/settings.local.json',
      '.hookloop/hooks.json',
      '.claude/agents/a.md',
    ]) {
      const { dir, path, trust, print } = scene({ name })
      trust.trust([print()])
      assert.deepEqual([trust.changedFiles(dir), trust.missingFiles(dir)], [[], []])
      writeFileSync(path, 'changed')
      assert.deepEqual(trust.changedFiles(dir), [print()])
      rmSync(path)
      assert.deepEqual([trust.changedFiles(dir), trust.missingFiles(dir)], [[], name.endsWith('.md') ? [] : [path]])
    }
    const { dir, path, trust, print } = scene({ name: 'script.sh' })
    trust.trust([print()])
    rmSync(path)
    assert.deepEqual([trust.changedFiles(dir), trust.missingFiles(dir)], [[], []])
  })

  test('lists a trusted file as changed if its folder leads nowhere, because it may be there again', () => {
    const { dir, path, trust, print } = scene()
    trust.trust([print()])
    rmSync(dirname(path), { recursive: true })
    symlinkSync('.claude', dirname(path))
    assert.deepEqual(trust.changedFiles(dir), [{ path, hash: '' }])
  })

  test('has a copy of each file, up to 262,144 characters, for the user only', () => {
    const sizes = [262_144, 262_145].map((size) => {
      const { trust, print } = scene({ text: 'x'.repeat(size) })
      trust.trust([print()])
      assert.equal(trust.statusOf(print()), 'trusted')
      return trust.trustedText(print())?.length
    })
    assert.deepEqual(sizes, [262_144, undefined])
    const { trust, print } = scene()
    trust.trust([print()])
    const copy = join(dirname(trust.file), 'trusted', print().hash)
    assert.deepEqual(
      [copy, trust.file].map((file) => statSync(file).mode & 0o777),
      [0o600, 0o600],
    )
  })

  test('has no copy of a file that has changed or is gone since its fingerprint was taken', () => {
    for (const change of [(path: string) => writeFileSync(path, 'evil'), (path: string) => rmSync(path)]) {
      const { path, trust, print } = scene()
      const before = print()
      change(path)
      trust.trust([before])
      assert.equal(trust.trustedText(before), undefined)
      assert.equal(existsSync(join(dirname(trust.file), 'trusted', before.hash)), false)
    }
  })

  test('must be outside of the project, unless it is in memory', () => {
    const { dir, print } = scene()
    assert.throws(() => new TrustStore(join(dir, 'trust.json')).checkOutside(dir), {
      code: 'CONFIG_INVALID',
      message: /is inside the project/,
    })
    new TrustStore(join(folder, 'trust.json')).checkOutside(dir)
    new TrustStore(join(homedir(), '.config/hookloop/trust.json')).checkOutside(homedir())
    TrustStore.of([print()]).checkOutside(process.cwd())
    assert.throws(() => TrustStore.of([]).trust([print()]), /in memory/)
  })

  for (const [what, text] of Object.entries({
    'not JSON': '{',
    'of another version': '{"version":2,"files":{}}',
    'without files': '{"version":1}',
    'with a relative path': `{"version":1,"files":{"a":"${'0'.repeat(64)}"}}`,
    'with a short hash': '{"version":1,"files":{"/a":"00"}}',
  })) {
    test(`is not used if it is ${what}, and is not overwritten`, () => {
      const { trust, print } = scene()
      mkdirSync(dirname(trust.file), { recursive: true })
      writeFileSync(trust.file, text, { mode: 0o600 })
      const unusable = { code: 'CONFIG_INVALID', message: /until then no project is trusted/ }
      assert.throws(() => trust.statusOf(print()), unusable)
      assert.throws(() => trust.trust([print()]), unusable)
      assert.equal(readFileSync(trust.file, 'utf8'), text)
      rmSync(trust.file)
      trust.trust([print()]) // the lock was released
    })
  }

  test('is not used if other users can write to it, or if it is not a file', () => {
    const { trust, print } = scene()
    trust.trust([print()])
    chmodSync(trust.file, 0o620)
    assert.throws(() => trust.statusOf(print()), /other users can write to it/)
    rmSync(trust.file)
    mkdirSync(trust.file)
    assert.throws(() => trust.statusOf(print()), /it is not a file/)
  })

  test('is not used if it belongs to another user', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
    const { trust, print } = scene()
    trust.trust([print()])
    for (const user of [1, 2]) {
      chownSync(trust.file, user, user)
      assert.throws(() => trust.statusOf(print()), /it belongs to another user/)
    }
    chownSync(trust.file, 0, 0)
    assert.equal(trust.statusOf(print()), 'trusted')
  })
})

test('the list is in the configuration folder of the user, unless a variable names another', () => {
  assert.equal(defaultTrustFile({}), join(homedir(), '.config/hookloop/trust.json'))
  assert.equal(defaultTrustFile({ XDG_CONFIG_HOME: '/settings' }), '/settings/hookloop/trust.json')
  assert.equal(defaultTrustFile({ XDG_CONFIG_HOME: '/settings', HOOKLOOP_TRUST: '/list.json' }), '/list.json')
  assert.equal(defaultTrustFile({ XDG_CONFIG_HOME: '/settings', HOOKLOOP_TRUST: '' }), '/settings/hookloop/trust.json')
  const usual = join(homedir(), '.config', 'hookloop', 'trust.json')
  assert.equal(defaultTrustFile({ XDG_CONFIG_HOME: '', HOOKLOOP_TRUST: '' }), usual)
})

test('files are trusted by the first 16 characters of their hash, and not by fewer or by others', () => {
  const { dir, print } = scene()
  const files = [print()]
  const hash = hashFiles(files, dir)
  const isTrusted = (given: string): boolean => trustedByHash(files, { dir, hash: given }) !== undefined
  assert.deepEqual(
    [hash, hash.slice(0, 16), ` ${hash.toUpperCase()} `, hash.slice(0, 15), '0'.repeat(16), ''].map(isTrusted),
    [true, true, true, false, false, false],
  )
  assert.equal(trustedByHash(files, { dir, hash })!.statusOf(files[0]!), 'trusted')
  assert.equal(trustedByHash([], { dir, hash: hashFiles([], dir) }), undefined)
})
