import { lookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

/**
 * Addresses that only this machine, or only its network, reaches: what is asked there is asked with their trust. And those
 * that stand for another address, which may be one of these, and those that nobody has.
 */
const inner = new BlockList()
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
  inner.addSubnet(network, bits, 'ipv4')
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
  inner.addSubnet(network, bits, 'ipv6')
}

/** Whether an address is not one of the whole world. What is no address at all is none of it either. */
export function isInnerAddress(address: string): boolean {
  const family = isIP(address)
  return family === 0 || inner.check(address, family === 4 ? 'ipv4' : 'ipv6') // also v4 addresses that are written as v6
}

/** As `dns.lookup` with `all: true`. */
export type Resolve = (
  host: string,
  options: LookupOptions & { readonly all: true },
  done: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void

/**
 * Finds the address of a host for a connection that must leave this network. It judges the very addresses that are then
 * connected to: a name that points elsewhere the next time it is asked gains nothing.
 */
export function lookupPublic(resolve: Resolve = lookup): LookupFunction {
  return (host, options, done) => {
    resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return done(error, [])
      const [first] = found
      if (first === undefined) return done(new Error(`${host} has no address`), [])
      const refused = found.find(({ address }) => isInnerAddress(address))
      if (refused !== undefined) return done(innerAddress(host, refused.address), [])
      if (options.all === true) return done(null, found)
      done(null, first.address, first.family)
    })
  }
}

export function innerAddress(host: string, address: string): Error {
  const name = host === address ? host : `${host} is ${address}, which`
  return new Error(`${name} is an address of this machine or its network`)
}
