import { lookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { once } from '../once.ts'

/**
 * Addresses that only this machine or its network can reach, and which trust requests from it; addresses that are translated to
 * others, possibly private ones; and reserved addresses.
 */
const blockedAddresses = once((): BlockList => {
  const blocked = new BlockList()
  for (const [network, bits] of [
    ['0.0.0.0', 8],
    ['10.0.0.0', 8],
    ['100.64.0.0', 10],
    ['127.0.0.0', 8],
    ['169.254.0.0', 16],
    ['172.16.0.0', 12],
    ['192.0.0.0', 24],
    ['192.0.2.0', 24],
    ['192.88.99.0', 24],
    ['192.168.0.0', 16],
    ['198.18.0.0', 15],
    ['198.51.100.0', 24],
    ['203.0.113.0', 24],
    ['224.0.0.0', 4],
    ['240.0.0.0', 4],
  ] as const) {
    blocked.addSubnet(network, bits, 'ipv4')
  }
  for (const [network, bits] of [
    ['::', 96],
    ['64:ff9b::', 96],
    ['64:ff9b:1::', 48],
    ['100::', 64],
    ['2001::', 23],
    ['2001:db8::', 32],
    ['2002::', 16],
    ['fc00::', 7],
    ['fe80::', 10],
    ['fec0::', 10],
    ['ff00::', 8],
  ] as const) {
    blocked.addSubnet(network, bits, 'ipv6')
  }
  return blocked
})

/** Whether an address is not a public one. Text that is not an address counts as private. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  return family === 0 || blockedAddresses().check(address, family === 4 ? 'ipv4' : 'ipv6') // also matches IPv4 addresses written as IPv6
}

/** As `dns.lookup` with `all: true`. */
export type Resolve = (
  host: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/**
 * A DNS lookup that only returns public addresses. It checks the addresses that are then connected to, so a name that
 * resolves differently the next time (DNS rebinding) gains nothing.
 */
export function lookupPublic(resolve: Resolve = lookup): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, [])
      const [first] = found
      if (first === undefined) return done(new Error(`${host} has no address`), [])
      const notPublic = found.find(({ address }) => isPrivateAddress(address))
      if (notPublic !== undefined) return done(privateAddressError(host, notPublic.address), [])
      if (options.all === true) return done(null, found)
      done(null, first.address, first.family)
    })
  }
}

export function privateAddressError(host: string, address: string): Error {
  const name = host === address ? host : `${host} is ${address}, which`
  return new Error(`${name} is a private address of this machine or its network`)
}
