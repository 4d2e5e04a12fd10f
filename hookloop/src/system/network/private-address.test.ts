import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isPrivateAddress, lookupPublic, type Resolve } from './private-address.ts'

suite('an address', () => {
  const inner = `0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
    172.31.255.255 192.0.0.8 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 255.255.255.255
    :: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a00:1 ::ffff:169.254.169.254 64:ff9b::7f00:1
    64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1
    localhost 127.1 0x7f000001 2130706433 nonsense`
  for (const address of inner.split(/\s+/)) {
    test(`${address} is private`, () => assert.ok(isPrivateAddress(address)))
  }

  const outer = `1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
    169.253.255.255 172.15.255.255 172.32.0.0 192.167.255.255 198.17.255.255 223.255.255.255 ::ffff:8.8.8.8
    2606:4700:4700::1111 2a00:1450:4001::200e 2400::1`
  for (const address of outer.split(/\s+/)) {
    test(`${address} is public`, () => assert.ok(!isPrivateAddress(address)))
  }
})

suite('a host name', () => {
  const resolving =
    (...addresses: string[]): Resolve =>
    (_host, _options, done) =>
      done(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
  const look = (resolve: Resolve, all: boolean) =>
    new Promise<unknown>((give) =>
      lookupPublic(resolve)('hooks.example', { all }, (error, found) => give(error?.message ?? found)),
    )

  test('that resolves to a private address is rejected, even if another address is public', async () => {
    assert.match(String(await look(resolving('10.0.0.7'), true)), /hooks\.example is 10\.0\.0\.7/)
    assert.match(String(await look(resolving('1.1.1.1', '::ffff:7f00:1'), true)), /hooks\.example is ::ffff:7f00:1/)
    assert.match(String(await look(resolving('1.1.1.1', '::1'), false)), /hooks\.example is ::1/)
  })

  test('that resolves to public addresses returns them', async () => {
    assert.equal(await look(resolving('1.1.1.1', '2606:4700::1'), false), '1.1.1.1')
    assert.deepEqual(await look(resolving('1.1.1.1'), true), [{ address: '1.1.1.1', family: 4 }])
  })

  test('that resolves to no address is rejected', async () => {
    assert.match(String(await look(resolving(), true)), /has no address/)
    assert.match(String(await look((_h, _o, done) => done(new Error('not found'), []), false)), /not found/)
  })
})
